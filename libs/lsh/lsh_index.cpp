#include "libs/lsh/lsh_index.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace penstock::lsh {
namespace {

constexpr u64 queries_at_once = 8192;
constexpr u64 records_at_once = 32768;  // of query_all
constexpr u64 distances_at_once = u64{64} << 20;

[[noreturn]] void refuse_index(std::string const& folder, std::string const& problem) {
  throw_bad_input("open index", folder, std::string(index_name) + " " + problem + ": build it again");
}

folder_options folder_options_of(executor const& on, index_options const& options) {
  folder_options how;
  const u64 usual = on.kind() == executor_kind::cuda ? u64{2} << 30 : u64{256} << 20;
  how.cache.bytes = options.cache_bytes != 0 ? options.cache_bytes : usual;
  how.cache.line_bytes = options.line_bytes;
  how.max_files = 16;
  return how;
}

void check_header(std::string const& folder, index_header const& h, u64 file_bytes) {
  if (h.magic != index_magic) refuse_index(folder, "is no index of this version");
  const bool plain = h.records > 0 && h.records <= max_records && h.dimensions > 0 && h.dimensions <= max_dimensions &&
                     h.tables > 0 && h.tables <= max_tables && h.projections_per_table > 0 &&
                     h.projections_per_table <= max_projections_per_table && h.bucket_bits <= max_bucket_bits &&
                     h.width >= min_width && h.width <= max_width && h.record_bytes % 16 == 0 &&
                     h.record_bytes >= h.dimensions * sizeof(float);
  if (!plain) refuse_index(folder, "has a damaged header");
  if (file_bytes != h.file_bytes()) {
    refuse_index(folder, "has " + std::to_string(file_bytes) + " bytes instead of " + std::to_string(h.file_bytes()));
  }
}

void check_offsets(std::string const& folder, index_header const& h, std::vector<u32> const& offsets) {
  for (u32 t = 0; t < h.tables; ++t) {
    auto const* const of_table = offsets.data() + t * (h.buckets() + 1);
    const bool ordered = std::is_sorted(of_table, of_table + h.buckets() + 1);
    if (!ordered || of_table[0] != 0 || of_table[h.buckets()] != h.records) {
      refuse_index(folder, "has damaged offsets of table " + std::to_string(t));
    }
  }
}

template <class T>
std::vector<T> read_section(std::ifstream& from, u64 at, u64 count) {
  std::vector<T> section(count);
  from.seekg(static_cast<std::streamoff>(at));
  from.read(reinterpret_cast<char*>(section.data()), static_cast<std::streamsize>(count * sizeof(T)));
  return section;
}

}  // namespace

void check_records(std::string const& folder, index_header const& header) {
  std::error_code failed;
  const u64 bytes = std::filesystem::file_size(folder + "/" + records_name, failed);
  if (failed) throw_os_error("open", folder + "/" + records_name, failed.value(), "name a folder with records");
  if (bytes < header.records * header.record_bytes) {
    throw_bad_input("open", folder + "/" + records_name,
                    "it has " + std::to_string(bytes) + " bytes, less than " + std::to_string(header.records) + " records of " +
                        std::to_string(header.record_bytes) + ": write them again, or build the index again");
  }
}

index_sections read_sections(std::string const& folder) {
  const std::string path = folder + "/" + index_name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_os_error("open index", path, errno, "build it first");
  index_sections found;
  file.read(reinterpret_cast<char*>(&found.header), sizeof found.header);
  std::error_code failed;
  const u64 bytes = std::filesystem::file_size(path, failed);
  if (!file || failed) refuse_index(folder, "is too short");
  index_header const& h = found.header;
  check_header(folder, h, bytes);
  found.projections = read_section<float>(file, h.projections_at(), u64{h.dimensions} * h.projections());
  found.shifts = read_section<float>(file, h.shifts_at(), h.projections());
  if (file && checksum_of(h, found.projections, found.shifts) != h.checksum) {
    refuse_index(folder, "has damaged projections, or a damaged header");
  }
  found.offsets = read_section<u32>(file, h.offsets_at(), h.offsets_count());
  if (!file) throw_os_error("read", path, EIO, "build it again");
  check_offsets(folder, h, found.offsets);
  check_records(folder, h);
  return found;
}

file_descriptor open_in_kernel(executor& on, folder const& files, std::string const& root, std::string const& name) {
  buffer<char> text(on.memory(), local, name.size());
  buffer<open_result> opened(on.memory(), local, 1);
  text.write({name.data(), name.size()});
  run(on, 1, open_named{files.view(), text.data(), static_cast<u32>(name.size()), opened.data()});
  open_result one;
  opened.read({&one, 1});
  if (!one.ok()) throw_os_error("open", root + "/" + name, static_cast<int>(one.error), "see that it can be read");
  return one.file;
}

/// Memory of the executor for a batch of queries.
struct lsh_index::batch_room {
  u64 queries_room = 0;
  u32 nearest = 0;
  u32 stride = 0, room = 0, slots = 0;
  buffer<float> queries, products, distances, nearest_distances;
  buffer<u64> keys;
  buffer<u32> seen, lists, counts, cut, nearest_ids;
};

lsh_index::lsh_index(std::string const& folder, index_options const& options)
    : root_(folder), options_(options), on_(open_executor(options.executor, options.threads, has_kernels)),
      folder_(*on_, folder, folder_options_of(*on_, options)), failed_(on_->memory(), local, 1) {
  if (options.max_candidates == 0 || options.max_candidates > (1u << 20)) {
    throw_bad_input("open index", folder, std::to_string(options.max_candidates) + " candidates: choose 1 to 1048576");
  }
  if (options.fallback > options.max_candidates) {
    throw_bad_input("open index", folder,
                    "a fallback of " + std::to_string(options.fallback) + " records: choose at most max_candidates, " +
                        std::to_string(options.max_candidates));
  }
  const index_sections sections = read_sections(folder);
  header_ = sections.header;
  memory_resource& memory = on_->memory();
  projections_ = buffer<float>(memory, local, sections.projections.size());
  shifts_ = buffer<float>(memory, local, sections.shifts.size());
  offsets_ = buffer<u32>(memory, local, sections.offsets.size());
  projections_.write(sections.projections);
  shifts_.write(sections.shifts);
  offsets_.write(sections.offsets);
  records_ = open_in_kernel(*on_, folder_, folder, records_name);
  entries_ = open_in_kernel(*on_, folder_, folder, index_name);
}

lsh_index::~lsh_index() = default;

index_facts lsh_index::facts() const {
  const std::lock_guard lock(mutex_);
  return {header_, on_->kind() == executor_kind::cuda ? "cuda" : "cpu", on_->device(),
          folder_options_of(*on_, options_).cache.bytes, folder_.cache().stats(0)};
}

u64 lsh_index::check_queries(std::span<float const> queries, u32 nearest) const {
  if (queries.size() % header_.dimensions != 0) {
    throw_bad_input("query", root_,
                    std::to_string(queries.size()) + " numbers are no vectors of " + std::to_string(header_.dimensions));
  }
  if (nearest == 0 || nearest > 1024) throw_bad_input("query", root_, std::to_string(nearest) + " nearest: choose 1 to 1024");
  const auto odd = std::find_if(queries.begin(), queries.end(), [](float v) { return !std::isfinite(v); });
  if (odd != queries.end()) {
    throw_bad_input("query", root_,
                    "vector " + std::to_string(static_cast<u64>(odd - queries.begin()) / header_.dimensions) +
                        " has a number that is not finite: leave it out");
  }
  return queries.size() / header_.dimensions;
}

lsh_index::batch_room lsh_index::make_room(u64 queries, u32 nearest, u32 room) const {
  memory_resource& memory = on_->memory();
  batch_room r;
  r.queries_room = queries;
  r.nearest = nearest;
  r.stride = static_cast<u32>(round_up(header_.dimensions, 4u));
  r.room = room;
  r.queries = buffer<float>(memory, local, queries * r.stride);
  r.distances = buffer<float>(memory, local, queries * room);
  r.nearest_distances = buffer<float>(memory, local, queries * nearest);
  r.nearest_ids = buffer<u32>(memory, local, queries * nearest);
  r.counts = buffer<u32>(memory, local, queries);
  return r;
}

lsh_index::batch_room& lsh_index::keep_room(u64 queries, u32 nearest) {
  const u64 at_once =
      std::clamp<u64>(queries, 1, std::clamp<u64>(distances_at_once / options_.max_candidates, 1, queries_at_once));
  if (kept_ != nullptr && kept_->queries_room >= at_once && kept_->nearest == nearest) return *kept_;
  kept_.reset();
  batch_room room = make_room(at_once, nearest, options_.max_candidates);
  memory_resource& memory = on_->memory();
  room.slots = std::bit_ceil(2 * options_.max_candidates + 64);
  room.products = buffer<float>(memory, local, at_once * header_.projections());
  room.keys = buffer<u64>(memory, local, at_once * header_.tables);
  room.seen = buffer<u32>(memory, local, at_once * room.slots);
  room.lists = buffer<u32>(memory, local, at_once * room.room);
  room.cut = buffer<u32>(memory, local, 1);
  kept_ = std::make_unique<batch_room>(std::move(room));
  return *kept_;
}

void lsh_index::reserve(u64 queries, u32 nearest) {
  const std::lock_guard lock(mutex_);
  keep_room(queries, nearest);
}

void lsh_index::load(batch_room& room, std::span<float const> queries, u64 first, u64 count) const {
  std::vector<float> padded(count * room.stride);
  for (u64 q = 0; q < count; ++q) {
    std::memcpy(padded.data() + q * room.stride, queries.data() + (first + q) * header_.dimensions,
                header_.dimensions * sizeof(float));
  }
  on_->memory().write(room.queries.data(), padded.data(), padded.size() * sizeof(float));
}

void lsh_index::check(std::string const& what) {
  u32 error = 0;
  failed_.read({&error, 1});
  if (error == 0) return;
  const u32 none = 0;
  failed_.write({&none, 1});
  if (error == EILSEQ) refuse_index(root_, "names records that there are not");
  throw_os_error(what, root_, static_cast<int>(error),
                 "see that its files can be read, and are as they were when it was built");
}

void lsh_index::find_candidates(batch_room& room, u64 count) {
  const hash_family family{projections_.data(),           shifts_.data(),      header_.dimensions,  header_.tables,
                           header_.projections_per_table, header_.bucket_bits, 1.0f / header_.width};
  const memory_records vectors{reinterpret_cast<char const*>(room.queries.data()), room.stride * sizeof(float)};
  run(*on_, count, project_vectors<memory_records>{vectors, 0, family, room.products.data(), failed_.data()});
  run(*on_, count, find_keys{room.products.data(), family, room.keys.data()});
  const file_entries entries{folder_.view(), entries_, header_.entries_at()};
  run(*on_, count * header_.tables,
      touch_buckets<file_entries>{entries, offsets_.data(), room.keys.data(), header_.records, header_.tables,
                                  header_.bucket_bits, room.room, failed_.data()});
  run(*on_, count,
      make_shortlists<file_entries>{entries, offsets_.data(), room.keys.data(), header_.records, header_.tables,
                                    header_.bucket_bits, room.room, options_.fallback, room.seen.data(), room.slots,
                                    room.lists.data(), room.counts.data(), room.cut.data(), failed_.data()});
  check("look up in");
}

void lsh_index::compare(batch_room& room, u64 count, u32 const* lists, u64 first_id) {
  const compare_records<file_records> body{records(), room.queries.data(),   header_.dimensions, room.stride,
                                           lists,     room.counts.data(),    first_id,           count,
                                           room.room, room.distances.data(), failed_.data()};
  run(*on_, body.items(), body);
  check("read");
}

void lsh_index::select(batch_room& room, u64 count, u32 const* lists, u64 first_id, u32 nearest) const {
  run(*on_, count,
      select_nearest{lists, room.counts.data(), first_id, room.room, room.distances.data(), nearest, room.nearest_ids.data(),
                     room.nearest_distances.data()});
}

query_result lsh_index::query(std::span<float const> queries, u32 nearest, progress_fn const& progress,
                              compare_fn const& compare_otherwise) {
  const u64 all = check_queries(queries, nearest);
  const std::lock_guard lock(mutex_);
  const u64 begun = now_ns();
  query_result result;
  result.ids.resize(all * nearest);
  result.distances.resize(all * nearest);
  batch_room& room = keep_room(all, nearest);
  memory_resource& memory = on_->memory();
  u32 cut = 0;
  room.cut.write({&cut, 1});
  const u64 at_once = room.queries_room;
  std::vector<u32> counts(at_once);
  for (u64 first = 0; first < all; first += at_once) {
    if (progress) progress("looking for neighbours", first, all);
    const u64 count = std::min(at_once, all - first);
    load(room, queries, first, count);
    find_candidates(room, count);
    if (compare_otherwise) {
      compare_otherwise({room.queries.data(), header_.dimensions, room.stride, room.lists.data(), room.counts.data(), count,
                         room.room, room.distances.data()});
    } else {
      compare(room, count, room.lists.data(), 0);
    }
    select(room, count, room.lists.data(), 0, nearest);
    memory.read(result.ids.data() + first * nearest, room.nearest_ids.data(), count * nearest * sizeof(u32));
    memory.read(result.distances.data() + first * nearest, room.nearest_distances.data(), count * nearest * sizeof(float));
    memory.read(counts.data(), room.counts.data(), count * sizeof(u32));
    for (u64 q = 0; q < count; ++q) result.candidates += counts[q];
  }
  room.cut.read({&cut, 1});
  result.cut = cut;
  result.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  return result;
}

namespace {

/// Merges one query's nearest of some records into those of the records before.
void merge_nearest(u32* ids, float* distances, u32 const* more_ids, float const* more_distances, u32 nearest) {
  std::vector<std::pair<float, u32>> both;
  for (u32 j = 0; j < nearest; ++j) {
    both.emplace_back(distances[j], ids[j]);
    both.emplace_back(more_distances[j], more_ids[j]);
  }
  std::sort(both.begin(), both.end());
  for (u32 j = 0; j < nearest; ++j) {
    distances[j] = both[j].first;
    ids[j] = both[j].second;
  }
}

}  // namespace

query_result lsh_index::query_all(std::span<float const> queries, u32 nearest, progress_fn const& progress) {
  const u64 all = check_queries(queries, nearest);
  const std::lock_guard lock(mutex_);
  const u64 begun = now_ns();
  query_result result;
  result.ids.assign(all * nearest, no_id);
  result.distances.assign(all * nearest, INFINITY);
  const u32 room_records = static_cast<u32>(std::min(records_at_once, header_.records));
  const u64 at_once = std::clamp<u64>(distances_at_once / room_records, 1, std::max<u64>(all, 1));
  batch_room room = make_room(at_once, nearest, room_records);
  std::vector<u32> ids(at_once * nearest);
  std::vector<float> distances(at_once * nearest);
  for (u64 first = 0; first < all; first += at_once) {
    const u64 count = std::min(at_once, all - first);
    load(room, queries, first, count);
    for (u64 record = 0; record < header_.records; record += room_records) {
      if (progress) progress("comparing with all records", first * header_.records + record * count, all * header_.records);
      const u32 some = static_cast<u32>(std::min<u64>(room_records, header_.records - record));
      const std::vector<u32> counts(count, some);
      on_->memory().write(room.counts.data(), counts.data(), count * sizeof(u32));
      compare(room, count, nullptr, record);
      select(room, count, nullptr, record, nearest);
      on_->memory().read(ids.data(), room.nearest_ids.data(), count * nearest * sizeof(u32));
      on_->memory().read(distances.data(), room.nearest_distances.data(), count * nearest * sizeof(float));
      for (u64 q = 0; q < count; ++q) {
        merge_nearest(result.ids.data() + (first + q) * nearest, result.distances.data() + (first + q) * nearest,
                      ids.data() + q * nearest, distances.data() + q * nearest, nearest);
      }
    }
  }
  result.candidates = all * header_.records;
  result.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  return result;
}

}  // namespace penstock::lsh
