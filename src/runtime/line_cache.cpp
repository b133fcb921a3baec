#include "penstock/runtime/line_cache.hpp"

#include "cache_checks.hpp"
#include "cache_room.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/identify.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

namespace penstock {
namespace {

constexpr u32 counter_shards = 64;
constexpr u32 prefetch_shards = 16;
constexpr u64 admission_stride = 16;         // words: its two are in lines of L2 of their own
constexpr u64 most_threads_per_unit = 2048;  // of a multiprocessor; the CPU executor's have fewer
/// Below this many version bits a CPU thread may sleep through a whole turn of them (PROTOCOLS.md §2, "Wrap").
constexpr u32 least_version_bits_cpu = 20;
/// `automatic` takes `direct` while its entries are at most this share of the cache's bytes: beyond, they would take memory
/// that is worth more as frames, and be too many for the GPU's L2, where a hit looks for them. So a cache of an eighth of the
/// data, which many take, has it for lines of 512 bytes, too, and a header more. Nobody misses the first MiB.
constexpr u64 direct_share = 7;
constexpr u64 direct_always = 1ull << 20;
/// Better lines that a search passes by (cache/direct_claim.hpp): a stream that goes through a cache full of lines that are
/// kept takes about one frame in so many from them, and no search gets much longer.
constexpr u32 passed_by = 32;

u64 process_number() {
  static const u64 number = [] {
    std::random_device random;
    return u64{random()} << 32 | random();
  }();
  return number;
}

[[noreturn]] void refuse(std::string const& problem) { throw_bad_input("create", "a cache", problem); }

}  // namespace

line_cache::line_cache(executor& on, std::vector<dataset_spec> const& datasets, cache_options const& options)
    : on_(on), options_(options), specs_(datasets) {
  view_.frames = static_cast<u32>(checked_frames(options));
  if (datasets.empty()) refuse("no dataset: name one or more that it is to serve");
  for (auto const& spec : datasets) lines_ += lines_of(spec, options.line_bytes);
  if (lines_ > 1ull << 40) refuse(std::to_string(lines_) + " lines: at most 2^40 can be numbered; make the lines larger");
  view_.line_shift = ceil_log2(options.line_bytes);
  choose_directory();
  const bool long_versions =
      on.kind() == executor_kind::cuda || view_.directory.layout.version_bits() >= least_version_bits_cpu;
  view_.validates = long_versions && !options.without.validation && !options.without.cache;
  view_.coalesces = !options.without.coalescing && !options.without.cache;
  view_.looks_up = !options.without.cache;
  view_.process = process_number();
  view_.patience_ns = 2 * options.timeout_ns;
  view_.retry = options.retry;
  const auto members = look_at_members(datasets);  // before a queue is made: what cannot be used gets none
  u32 most_queues = ~0u;
  for (auto const& spec : datasets) {
    for (auto const& member : spec.volume.members) most_queues = std::min(most_queues, member.owner->limits().queues);
  }
  const ring_choice rings = rings_for(on, options_, most_queues);
  options_.queues = rings.queues;
  options_.queue_depth = rings.depth;
  make_directory();
  make_frames();
  add_queues(datasets);
  place_datasets(datasets, members);
  make_writes();
  dataset_table_ = {on.memory(), memory_kind::local, datasets_.size()};
  view_.datasets = dataset_table_.data();
  view_copy_ = {on.memory(), memory_kind::local, 1};
  write_views();
  if (options_.directory_in_l2) l2_bytes_ = on.keep_in_l2(entries_.data(), entries_.bytes());
}

line_cache::~line_cache() {
  try {
    if (has_unflushed()) flush();
  } catch (error const& lost) {
    std::fprintf(stderr, "penstock: the cache is closed and this is lost: %s\n", lost.what());
  }
  bool closed = true;
  for (auto const& q : queues_) closed &= q->close();
  if (!closed) {
    frames_.leak();
    write_buffers_.leak();
  }
  on_.forget_in_l2(entries_.data());
}

void line_cache::choose_directory() {
  const u64 direct_bytes = lines_ * sizeof(u64);
  const bool numbered = lines_ >> 32 == 0;  // what a hit computes with
  // Without a cache nothing is looked up, and frames need entries of their own.
  if (options_.without.cache) options_.directory = directory_kind::set_associative;
  if (options_.directory == directory_kind::automatic) {
    const bool few = numbered && direct_bytes <= std::max(direct_always, view_.frames * options_.line_bytes / direct_share);
    options_.directory = few || view_.frames < set_ways ? directory_kind::direct : directory_kind::set_associative;
  }
  if (options_.directory == directory_kind::direct) {
    if (!numbered) {
      refuse(std::to_string(lines_) +
             " lines: the direct directory takes fewer than 2^32; choose the set-associative one, or larger lines");
    }
    view_.directory.layout.place_bits = std::max(1u, ceil_log2(view_.frames));
    return;
  }
  const u32 sets = view_.frames / set_ways;
  if (sets == 0) {
    refuse(std::to_string(view_.frames) + " frames: a set-associative cache has at least one set of " +
           std::to_string(set_ways) + "; make it larger, or choose the direct directory");
  }
  view_.frames = sets * set_ways;
  view_.directory.map = set_map::of(std::max<u64>(1, lines_), sets);
  if (view_.directory.map.tag_bits() > set_map::most_place_bits) {
    refuse(std::to_string(lines_) + " lines in " + std::to_string(sets) +
           " sets: too many lines for a set to tell apart; make the cache or the lines larger");
  }
  view_.directory.layout.place_bits = view_.directory.map.place_bits();
}

void line_cache::make_directory() {
  const bool direct = options_.directory == directory_kind::direct;
  const u64 words = direct ? lines_ : u64{view_.directory.map.sets} * set_words;
  try {
    entries_ = {on_.memory(), memory_kind::local, words};
  } catch (error const&) {
    if (!direct) throw;
    refuse("a direct directory of " + std::to_string(lines_) + " lines needs " + std::to_string(words * sizeof(u64)) +
           " bytes, which cannot be had: choose the set-associative one, or larger lines");
  }
  view_.directory.entries = entries_.data();
}

void line_cache::make_frames() {
  using enum memory_kind;
  memory_resource& memory = on_.memory();
  const u32 frames = view_.frames;
  frames_ = {memory, local, frames * options_.line_bytes};
  view_.frames_base = reinterpret_cast<u64>(frames_.data());
  records_ = {memory, local, frames};
  records_.write(std::vector<frame_record>(frames, frame_record{frame_record::nobody, 0, 0}));
  view_.records = records_.data();
  positions_ = {memory, local, 2};
  view_.policy = {positions_.data(), frames};
  view_.next_fresh = positions_.data() + 1;
  fault_ = {memory, shared, 1};
  view_.fault = fault_.data();
  fault_taken_ = {memory, local, 1};
  view_.fault_taken = fault_taken_.data();
  serving_ = {memory, local, 1};
  view_.serving = serving_.data();
}

void line_cache::add_queues(std::vector<dataset_spec> const& datasets) {
  for (auto const& spec : datasets) {
    for (auto const& member : spec.volume.members) {
      if (std::find(controllers_.begin(), controllers_.end(), member.owner) == controllers_.end()) {
        controllers_.push_back(member.owner);
      }
    }
  }
  std::vector<line_cache_view::queue_pair> table;
  bool straight = false;  // some controller writes to frames
  for (controller* owner : controllers_) {
    const queue_options options = queue_options_for(on_, options_, owner->limits());
    const bool bounce = options.bounce_bytes != 0;
    straight |= !bounce;
    if (!bounce) owner->add_buffer(frames_.data(), frames_.bytes());
    for (u32 q = 0; q < options_.queues; ++q) {
      queues_.push_back(std::make_unique<queue_pair<line_sink>>(on_.memory(), *owner, static_cast<u16>(q + 1), options));
      table.push_back(queues_.back()->view());
      table.back().index = static_cast<u16>(table.size() - 1);
    }
  }
  queue_table_ = {on_.memory(), memory_kind::local, table.size()};
  queue_table_.write(table);
  view_.queues = queue_table_.data();
  view_.queues_count = static_cast<u32>(table.size());

  // Frames of more than two pages need a list each; without bounce buffers commands point at frames.
  if (straight && options_.line_bytes > 2 * nvme::page_bytes) {
    const u64 words = prp_list_stride / sizeof(u64);
    lists_ = {on_.memory(), memory_kind::local, view_.frames * words};
    std::vector<u64> lists(lists_.size());
    for (u64 f = 0; f < view_.frames; ++f) {
      nvme::write_prp_list(lists.data() + f * words, view_.frames_base + f * options_.line_bytes, options_.line_bytes);
    }
    lists_.write(lists);
    view_.prp_lists = reinterpret_cast<u64>(lists_.data());
  }

  // At most half of the rings and a quarter of the frames are in flight ahead of need.
  in_flight_ = {on_.memory(), memory_kind::local, prefetch_shards};
  view_.prefetches_in_flight = in_flight_.data();
  view_.prefetch_shards = prefetch_shards;
  const u64 users = std::min<u64>(prefetch_shards, on_.units());
  const u64 ring = queues_.empty() ? 0 : queues_.front()->view().in_flight_limit;
  const u64 ring_share = table.size() * ring / 2 / users;
  if (view_.looks_up) view_.prefetch_limit = static_cast<u32>(std::min<u64>(ring_share, view_.frames / 4 / users));
  // Half of them are claimed by waiting threads at a time: beside the quarter, a victim is found in a few steps.
  if (const u64 most = std::max<u64>(1, view_.frames / 2); most < most_threads_per_unit * on_.units()) {
    admission_ = {on_.memory(), memory_kind::local, 2 * admission_stride};
    view_.admission = {admission_.data(), admission_.data() + admission_stride, static_cast<u32>(most)};
  }
  const u64 ahead = std::min<u64>(options_.read_ahead_bytes / options_.line_bytes, view_.frames / 8);
  if (view_.looks_up) view_.reads_ahead = static_cast<u32>(ahead - ahead % (near_blocks * ahead_block(view_)));
}

std::vector<std::vector<namespace_facts>> line_cache::look_at_members(std::vector<dataset_spec> const& datasets) const {
  std::vector<std::vector<namespace_facts>> all;
  for (auto const& spec : datasets) {
    check_volume(spec, options_.line_bytes);
    all.emplace_back();
    for (u32 m = 0; m < spec.volume.members.size(); ++m) {
      auto const& member = spec.volume.members[m];
      all.back().push_back(identify_namespace(*member.owner, member.namespace_id));
      check_member(spec, m, all.back().back(), options_.line_bytes);
    }
  }
  return all;
}

void line_cache::place_datasets(std::vector<dataset_spec> const& datasets,
                                std::vector<std::vector<namespace_facts>> const& members) {
  const u64 count = datasets.size();
  counters_ = {on_.memory(), memory_kind::local, count * counter_shards};
  health_ = {on_.memory(), memory_kind::local, count};
  u64 line = 0;
  for (auto const& spec : datasets) {
    dataset_view data;
    data.first_line = line;
    data.index = static_cast<u32>(datasets_.size());
    data.lines = lines_of(spec, options_.line_bytes);
    data.bytes = spec.bytes;
    data.writable = spec.writable;
    data.health = health_.data() + data.index;
    data.counters = {counters_.data() + datasets_.size() * counter_shards, counter_shards};
    data.memory = spec.own_fills ? dataset_view::made : reinterpret_cast<u64>(spec.memory);
    data.volume.layout = spec.volume.layout;
    data.volume.members_count = static_cast<u32>(spec.volume.members.size());
    data.volume.stripe_shift = ceil_log2(spec.volume.stripe_bytes);
    for (u32 m = 0; m < data.volume.members_count; ++m) {
      auto const& member = spec.volume.members[m];
      const auto at = std::find(controllers_.begin(), controllers_.end(), member.owner) - controllers_.begin();
      data.volume.members[m] = {member.namespace_id, ceil_log2(members[datasets_.size()][m].block_bytes),
                                static_cast<u32>(at) * options_.queues, options_.queues};
    }
    line += data.lines;
    datasets_.push_back(data);
  }
}

void line_cache::write_views() const {
  on_.memory().write(dataset_table_.data(), datasets_.data(), dataset_table_.bytes());
  on_.memory().write(view_copy_.data(), &view_, sizeof view_);
}

line_reader line_cache::reader(u32 dataset, u64 origin, u64 elements, u64 item_bytes, u64 alignment) const {
  dataset_spec const& spec = specs_.at(dataset);
  if (origin % alignment != 0) {
    throw_bad_input("open", spec.name,
                    "its data starts at byte " + std::to_string(origin) + ", which is no multiple of " +
                        std::to_string(alignment) + ": write it anew with NumPy");
  }
  if (origin > spec.bytes || elements > (spec.bytes - origin) / item_bytes) {
    throw_bad_input("open", spec.name,
                    std::to_string(elements) + " elements of " + std::to_string(item_bytes) + " bytes from byte " +
                        std::to_string(origin) + " need more than its " + std::to_string(spec.bytes) +
                        " bytes: the file is cut short or the shape is wrong");
  }
  return line_reader::over(view_, view_copy_.data(), dataset, datasets_[dataset].first_line, datasets_[dataset].counters);
}

void line_cache::check_has_source(u32 dataset) const {
  dataset_spec const& spec = specs_.at(dataset);
  if (!spec.own_fills) return;
  throw_bad_input("open", spec.name, "its lines are made by a filled_cache_view: read it by array_through");
}

void line_cache::check_takes_policy(u32 dataset) const {
  if (view_.directory.is_direct()) return;
  throw_bad_input("open", specs_.at(dataset).name,
                  "the sets of its cache choose their victims themselves: ask for directory_kind::direct");
}

void line_cache::check_pins(u64 groups, u64 pins_per_group) const {
  if (pins_per_group == 0 || groups <= view_.frames / 2 / pins_per_group) return;
  refuse(std::to_string(view_.frames) + " lines of " + std::to_string(options_.line_bytes) + " bytes, but " +
         std::to_string(groups) + " groups that may pin " + std::to_string(pins_per_group) +
         " each need twice that: ask for a cache of at least " +
         std::to_string(groups * pins_per_group * 2 * options_.line_bytes) + " bytes");
}

void line_cache::check_faults() {
  fault_slot& slot = *fault_.data();
  if (system_ref<u32>(slot.failure).load(relaxed) == 0) return;
  const u32 failure = system_ref<u32>(slot.failure).exchange(0, acquire);
  if (failure == 0) return;  // another thread tells it
  // Nobody stores here until the word is cleared, and nobody sees that before what comes ahead of it.
  const fault_access access = system_ref<fault_access>(slot.access).load(relaxed);
  const u32 dataset = system_ref<u32>(slot.dataset).load(relaxed);
  const u64 offset = system_ref<u64>(slot.offset).load(relaxed);
  clear_word(*fault_taken_.data());
  throw_status(access == fault_access::write ? "write" : "read", specs_.at(dataset).name + " at byte " + std::to_string(offset),
               unpack_status(failure));
}

void line_cache::advise(u32 dataset, advice how) {
  datasets_.at(dataset).advised = how;
  const auto some = [&](advice which) {
    return std::any_of(datasets_.begin(), datasets_.end(), [&](dataset_view const& d) { return d.advised == which; });
  };
  view_.spare_normal = some(advice::stream) ? passed_by : 0;
  view_.spare_kept = view_.spare_normal + (some(advice::keep) ? passed_by : 0);
  write_views();
}

void line_cache::limit_share(u32 dataset, double share) {
  const bool direct = view_.directory.is_direct();
  const u32 whole = direct ? view_.frames : set_ways;
  const double part = share * whole + 1e-6;  // a third of 3 is 1
  if (!(share <= 1) || !(part >= 1)) {
    throw_bad_input("limit", specs_.at(dataset).name,
                    "a share of " + std::to_string(share) + " of the cache: it takes from " + std::to_string(1.0 / whole) +
                        " to 1" + (direct ? "" : "; the direct directory has smaller ones"));
  }
  datasets_.at(dataset).part = static_cast<u32>(part);
  write_views();
}

recovery line_cache::recover(recover_scope which) {
  const recovery done = recover_queues(on_, queues_, which);
  // Datasets that were taken for failed are asked again, and so are writes.
  for (u64 d = 0; d < health_.size(); ++d) {
    clear_word(health_.data()[d].failures);
    clear_word(health_.data()[d].verdict);
  }
  forgive_writes();
  return done;
}

// Kernels of the CPU executor may look at the word meanwhile; on CUDA none runs, and its memory is not the host's to store in.
void line_cache::clear_word(u32& word) const {
  constexpr u32 none = 0;
  if (on_.kind() == executor_kind::cpu) {
    device_ref<u32>(word).store(none, release);  // partner: latch
  } else {
    on_.memory().write(&word, &none, sizeof none);
  }
}

cache_stats line_cache::stats(u32 dataset) const {
  std::vector<counter_shard> shards(counter_shards);
  counter_shard* const counted = datasets_.at(dataset).counters.shards;
  if (on_.kind() == executor_kind::cpu) {
    // Threads of a queue_service may count meanwhile.
    for (u64 s = 0; s < shards.size(); ++s) {
      for (u32 k = 0; k < counter_kinds; ++k) shards[s].values[k] = device_ref<u64>(counted[s].values[k]).load(relaxed);
    }
  } else {
    on_.memory().read(shards.data(), counted, shards.size() * sizeof(counter_shard));
  }
  auto sum = [&](counter which) {
    return std::accumulate(shards.begin(), shards.end(), u64{0},
                           [&](u64 total, counter_shard const& s) { return total + s.values[static_cast<u32>(which)]; });
  };
  return {sum(counter::hits),          sum(counter::misses),        sum(counter::joins),          sum(counter::fills),
          sum(counter::prefetches),    sum(counter::evictions),     sum(counter::retries),        sum(counter::refills),
          sum(counter::errors),        sum(counter::bytes_asked),   sum(counter::bytes_moved),    sum(counter::writes),
          sum(counter::whole_lines),   sum(counter::write_backs),   sum(counter::write_commands), sum(counter::write_errors),
          sum(counter::bytes_changed), sum(counter::bytes_written), sum(counter::frame_waits),    sum(counter::search_ns),
          sum(counter::clean_ns),      sum(counter::frame_wait_ns)};
}

std::vector<queue_counts> line_cache::queues() const {
  std::vector<queue_counts> all;
  all.reserve(queues_.size());
  for (auto const& q : queues_) all.push_back(q->counts());
  return all;
}

directory_kind line_cache::directory() const { return options_.directory; }

u64 line_cache::directory_bytes_per_tib() const {
  double data = 0;
  for (auto const& spec : specs_) data += static_cast<double>(spec.bytes);
  return data == 0 ? 0 : static_cast<u64>(static_cast<double>(directory_bytes()) / data * 0x1p40);
}

u64 line_cache::metadata_bytes() const {
  return entries_.bytes() + records_.bytes() + lists_.bytes() + counters_.bytes() + queue_table_.bytes() + transit_bytes();
}

u64 line_cache::transit_bytes() const {
  u64 total = write_buffers_.bytes() + write_entries_.bytes() + write_lists_.bytes() + write_slots_.bytes();
  for (auto const& q : queues_) total += q->metadata_bytes();
  return total;
}

}  // namespace penstock
