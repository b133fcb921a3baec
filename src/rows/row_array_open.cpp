// Opening of an array of rows: what lies where, and what that takes.
#include "../host/owned_file.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"
#include "row_array_state.hpp"
#include "shared_gather.hpp"
#include "watched_copy.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace penstock {
namespace {

// Rings between a GPU and threads of the host, where nothing else is asked for. As many for each thread, or some have more to
// do than others; and as deep as what lands in them allows: of short lines thousands must be under way (docs/MISS_PATH.md).
constexpr u32 rings_per_thread = 2, least_ring = 256, most_ring = 1024;
constexpr u64 most_in_rings = 32ull << 20;

// Parts of a copy that processes have together. Many of each, or what is read most lies in the memory of one; and no more than
// a message carries descriptors.
constexpr u64 least_part = 32ull << 20, most_parts = 240, most_parts_each = 16;

u64 parts_of_each(u64 bytes, u32 processes) {
  const u64 most = std::min(most_parts_each, most_parts / processes);
  return std::clamp<u64>(bytes / (processes * least_part), 1, std::max<u64>(most, 1));
}
u64 part_bytes(u64 bytes, u64 parts) { return round_up(ceil_div(bytes, parts), memory_resource::part_granule); }

constexpr u64 small_page = 4096, page_table_entry = 8;
constexpr u64 direct_block = 4096;  // of any device

std::string name_of(row_source const& source) { return source.path.empty() ? "an array in memory" : source.path; }

void check_placement(executor const& on, row_source const& source, row_array_options const& options) {
  const bool cuda = on.kind() == executor_kind::cuda, written_file = options.writable && !source.path.empty();
  if (options.where == placement::hbm && !cuda && options.copied.parts.empty()) {
    throw_bad_input("place", "an array", "there is no GPU for placement hbm: choose host or storage");
  }
  if (options.where == placement::hbm && written_file) {
    throw_bad_input("open", source.path, "placement hbm is a copy, and stores would not reach the file: choose storage");
  }
  shared_copy const& copied = options.copied;
  if (!copied.parts.empty()) {
    if (options.where != placement::hbm || options.writable || (source.path.empty() && source.memory == nullptr)) {
      throw_bad_input("place", "an array", "processes share copies of what is only read: choose placement hbm");
    }
    if (copied.own >= copied.processes || copied.parts.size() % copied.processes != 0) {
      throw_bad_input("place", "an array", "its parts are not those of as many processes: give as many of each");
    }
  }
  if (options.where == placement::host && cuda && written_file) {
    throw_bad_input("open", source.path, "a GPU cannot store into a mapped file: choose placement storage");
  }
  if (options.where == placement::storage && source.path.empty()) {
    throw_bad_input("place", "an array in memory", "only a file lies on storage: choose host or hbm");
  }
  if (source.volume && options.where != placement::storage) {
    throw_bad_input(
        "open", source.path,
        "an array on a volume is read where it lies, through a cache: choose placement storage (or that as below of "
        "tiered), or export it");
  }
  if (source.volume && options.writable) {
    throw_bad_input("open", source.path, "what is on a volume stays as it was imported: export it to store into it");
  }
}

void choose_rings(cache_options& cache, software_options const& served) {
  if (served.threads == 0 || cache.queues != 0) return;
  cache.queues = std::min(served.max_queues, rings_per_thread * served.threads);
  const u64 entries = most_in_rings / (u64{cache.queues} * cache.line_bytes);
  cache.queue_depth = std::clamp(static_cast<u32>(std::bit_floor(entries)), least_ring, most_ring);
}

/// Of host memory behind a cache: whoever misses a line copies it, without a command.
bool copies_lines(row_array_options const& options, std::uintptr_t begins) { return !options.writable && begins % 16 == 0; }

u64 transit_bytes_of(executor const& on, row_array_options const& options) {
  const software_options served = software_options_for(on, options.engine, options.controller_threads);
  cache_options cache = options.cache;
  choose_rings(cache, served);
  return transit_bytes_for(on, cache, limits_of(served), options.writable);
}

void check_shape(row_shape const& shape, std::string const& name) {
  if (shape.row_bytes == 0) throw_bad_input("open", name, "rows of 0 bytes: give it at least one element a row");
  if (shape.rows > (u64{1} << 62) / shape.row_bytes) throw_bad_input("open", name, "it has more bytes than an address");
}

}  // namespace

row_array::state::state(executor& executor, row_shape const& asked, row_source const& source, row_array_options const& with,
                        row_progress const& watch)
    : memory_owner(source.owner), on(executor), shape(asked), options(with), device(rows::make_row_device(executor)),
      reports(executor.memory()) {
  check_placement(on, source, options);
  check_shape(shape, name_of(source));
  place.rows = shape.rows;
  place.row_bytes = place.pitch = shape.row_bytes;
  place.bytes = shape.bytes();
  if (shape.rows == 0) return;
  switch (options.where) {
    case placement::hbm: copy_to_hbm(source, watch); break;
    case placement::storage: source.volume ? open_volume(source) : open_storage(source); break;
    default: open_host(source);
  }
}

row_array::state::~state() {
  try {
    if (device != nullptr) device->finish_beside();
  } catch (error const&) {}
  if (cache == nullptr || !options.writable || !cache->has_unflushed()) return;
  try {
    check_stored();
  } catch (error const& lost) {  // the cache would write behind the end of the file: zeros where rows were
    std::fprintf(stderr, "penstock: the array is closed and what was stored since its last flush is lost: %s\n", lost.what());
    try {
      cache->discard(0, 0, place.origin + shape.bytes());
    } catch (error const&) {}
  }
}

void row_array::state::copy_to_hbm(row_source const& source, row_progress const& watch) {
  auto const* from = static_cast<std::byte const*>(source.memory);
  std::optional<rows::mapped_rows> mapped;
  if (!source.path.empty()) {
    mapped.emplace(source.path, source.offset, shape.bytes(), false);
    mapped->expect_all();
    from = reinterpret_cast<std::byte const*>(mapped->data());
  } else if (source.memory != nullptr) {
    watch_memory(source.memory);
  }
  std::byte* const begin = copy_own(from, watch);
  if (mapped && mapped->was_cut()) mapped->check();
  check_file();
  watched.reset();
  memory_owner.reset();
  place.address = reinterpret_cast<u64>(begin);
}

std::byte* row_array::state::copy_own(std::byte const* from, row_progress const& watch) {
  shared_copy const& how = options.copied;
  if (how.parts.empty()) {
    copy = {on.memory(), memory_kind::local, round_up(shape.bytes(), 16)};
    if (from != nullptr) rows::watched_copy(on.memory(), copy.data(), from, shape.bytes(), watch);
    return copy.data();
  }
  const u64 each = part_bytes(shape.bytes(), how.parts.size());
  std::vector<memory_part> parts;
  parts.reserve(how.parts.size());
  for (const int part : how.parts) parts.push_back({part, each});
  shared = {on.memory(), std::move(parts)};
  const u64 own_parts = how.parts.size() / how.processes;
  for (u64 k = 0; k < own_parts; ++k) {
    const u64 first = (k * how.processes + how.own) * each;
    if (first >= shape.bytes()) break;
    const auto seen = [&](u64 done, u64) {
      if (watch) watch(k * each + done, own_parts * each);
    };
    rows::watched_copy(on.memory(), shared.data() + first, from + first, std::min(each, shape.bytes() - first), seen);
  }
  return shared.data();
}

std::vector<int> share_copy(executor& on, u64 bytes, u32 processes) {
  if (processes == 0 || processes > most_parts) {
    throw_bad_input("share", "a copy", std::to_string(processes) + " processes: give 1 to " + std::to_string(most_parts));
  }
  const u64 each = parts_of_each(bytes, processes), least = std::max<u64>(bytes, 1);
  std::vector<owned_file> made;
  made.reserve(each);
  for (u64 k = 0; k < each; ++k) made.emplace_back(on.memory().make_part(part_bytes(least, each * processes)));
  std::vector<int> files;
  files.reserve(each);
  for (owned_file& file : made) files.push_back(file.release());
  return files;
}

void row_array::state::open_storage(row_source const& source) {
  start_controller();
  // Lines begin where rows do: those of 512 bytes behind a header of 128 would lie in two each.
  const u64 first = options.direct && source.offset % direct_block != 0 ? 0 : source.offset;
  file_namespace rows_in_file{.path = source.path, .direct = options.direct, .writable = options.writable};
  rows_in_file.first_byte = first;
  rows_in_file.bytes = source.offset - first + shape.bytes();
  const u32 space = controller->add_namespace(rows_in_file);
  stored_path = source.path;
  stored_end = source.offset + shape.bytes();
  make_cache(name_of(source), source.offset - first + shape.bytes(), {.members = {{&*controller, space}}},
             source.offset - first);
}

void row_array::state::open_volume(row_source const& source) {
  start_controller();
  volume = source.volume;
  volume_spec spread{volume->layout, {}, volume->stripe_bytes};
  for (std::string const& path : volume->members) {
    const u32 space = controller->add_namespace(file_namespace{.path = path, .direct = options.direct});
    spread.members.push_back({&*controller, space});
  }
  make_cache(source.path, volume->bytes, spread, source.offset);
}

void row_array::state::open_host(row_source const& source) {
  void* memory = source.memory;
  if (!source.path.empty()) {
    file.emplace(source.path, source.offset, shape.bytes(), options.writable);
    memory = file->data();
  }
  if (memory == nullptr) throw_bad_input("place", "an array", "it has neither a file nor memory");
  if (!file) watch_memory(memory);
  if (options.where == placement::host_cached && copies_lines(options, reinterpret_cast<std::uintptr_t>(memory))) {
    registration.emplace(on.memory(), file ? file->base() : memory, file ? file->mapped_bytes() : shape.bytes(), false);
    dataset_spec rows{name_of(source), shape.bytes(), {}, false, memory};
    cache = std::make_unique<line_cache>(on, std::vector<dataset_spec>{rows}, options.cache);
    return take_cache(0);
  }
  if (options.where == placement::host_cached) {
    start_controller();
    memory_space = controller->add_namespace(std::span(static_cast<std::byte*>(memory), shape.bytes()));
    return make_cache(name_of(source), shape.bytes(), {.members = {{&*controller, memory_space}}}, 0);
  }
  registration.emplace(on.memory(), file ? file->base() : memory, file ? file->mapped_bytes() : shape.bytes(),
                       options.writable);
  place.address = reinterpret_cast<u64>(memory);
}

void row_array::state::start_controller() {
  const software_options served = software_options_for(on, options.engine, options.controller_threads);
  choose_rings(options.cache, served);
  controller.emplace(served);
}

void row_array::state::make_cache(std::string const& name, u64 bytes, volume_spec const& where, u64 origin) {
  const dataset_spec rows{name, bytes, where, options.writable};
  cache = std::make_unique<line_cache>(on, std::vector<dataset_spec>{rows}, options.cache);
  take_cache(origin);
}

void row_array::state::take_cache(u64 origin) {
  place.reader = cache->array<u8>(0, origin, shape.bytes()).reader();
  place.origin = origin;
}

void row_array::state::watch_memory(void* memory) {
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<u64>(memory);
  const u64 first = begin / page * page;
  watched.emplace(reinterpret_cast<void*>(first), round_up(begin + shape.bytes() - first, page), options.writable,
                  mapping_of::caller);
}

void row_array::state::move_memory(void* to) {
  if (memory_space == 0) throw_bad_input("move", "the memory of an array", "it is not behind a cache: open it anew");
  if (device != nullptr) device->finish_beside();
  controller->move_memory(memory_space, static_cast<std::byte*>(to));
  watch_memory(to);
}

row_array_plan plan_rows(executor const& on, row_shape const& shape, row_source const& source,
                         row_array_options const& options) {
  check_placement(on, source, options);
  check_shape(shape, name_of(source));
  if (options.where == placement::storage || options.where == placement::host_cached) check_cache(options.cache);
  row_array_plan plan;
  const bool cuda = on.kind() == executor_kind::cuda;
  const u64 bytes = shape.bytes();
  if (options.where == placement::hbm) plan.hbm_bytes = ceil_div(bytes, options.copied.processes);
  if (options.where == placement::host || options.where == placement::host_cached) plan.host_bytes = bytes;
  if (options.where == placement::host && cuda) plan.mapping_bytes = ceil_div(bytes, small_page) * page_table_entry;
  if (options.where == placement::host && cuda && options.gather_threads != 0 && rows::may_be_shared(shape)) {
    plan.transit_bytes = rows::sharing_bytes;
  }
  if (options.where == placement::storage) plan.storage_bytes = bytes;
  if (options.where == placement::storage || options.where == placement::host_cached) {
    (cuda ? plan.hbm_bytes : plan.host_bytes) += options.cache.bytes;
    const u64 frames = options.cache.bytes / options.cache.line_bytes, lines = ceil_div(bytes, options.cache.line_bytes);
    const u64 directory = options.cache.directory == directory_kind::set_associative ? frames * 64 / 7 : lines * sizeof(u64);
    plan.metadata_bytes = directory + frames * sizeof(frame_record);
    const auto begins = reinterpret_cast<std::uintptr_t>(source.memory) + source.offset;
    const bool by_command = options.where == placement::storage || !copies_lines(options, begins);
    if (by_command) plan.transit_bytes = transit_bytes_of(on, options);
  }
  return plan;
}

}  // namespace penstock
