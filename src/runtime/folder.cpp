#include "penstock/runtime/folder.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>

namespace penstock {
namespace {

constexpr u32 line_bits_per_set = 19;  // lines of the line space: tag and distance then leave a version of 20 bits and more
constexpr u64 max_bytes = u64{1} << 46;
constexpr u32 max_call_queues = 8;
constexpr u32 default_files = 65536;
constexpr u32 least_shares = 4096;  // of the line space of a writable folder

/// Of the line space of a cache with these options.
u64 line_space_bytes(cache_options const& options) {
  check_cache(options);
  const u64 sets = options.bytes / options.line_bytes / set_ways;
  return std::min(max_bytes, std::max<u64>(1, sets) * options.line_bytes << line_bits_per_set);
}

u32 call_threads_for(executor const& on, u32 wanted) {
  if (on.kind() == executor_kind::cpu) return 0;
  return wanted != 0 ? wanted : std::clamp(std::thread::hardware_concurrency() / 2, 1u, max_call_queues);
}

/// Bytes of the line space. Throws bad_input.
u64 checked_space(std::string const& root, folder_options const& options) {
  constexpr u32 max_files = 1u << 24, max_calls = 1u << 20;
  if (options.max_files > max_files || options.max_calls > max_calls) {
    throw_bad_input(
        "open folder", root,
        "it has at most " + std::to_string(max_files) + " open files and " + std::to_string(max_calls) + " calls: allow fewer");
  }
  if (options.max_calls == 0) throw_bad_input("open folder", root, "it may have no call: allow one");
  const u64 bytes = line_space_bytes(options.cache), room = bytes / file_folder::least_growing_bytes;
  if (!options.writable || options.max_files <= room) return bytes;
  throw_bad_input("open folder", root,
                  "its cache has room for " + std::to_string(room) + " files that may be written, fewer than " +
                      std::to_string(options.max_files) + " open ones: allow fewer, or give it a larger cache");
}

u32 files_of(folder_options const& options) { return options.max_files != 0 ? options.max_files : default_files; }

}  // namespace

folder::folder(executor& on, std::string const& root, folder_options const& options)
    : on_(on), root_(root), files_(root, options.writable, checked_space(root, options), files_of(options),
                                   std::max(options.max_files, least_shares)),
      data_(software_options_for(on, options.engine, options.controller_threads)),
      calls_(files_, call_threads_for(on, options.call_threads)) {
  cache_options cache = options.cache;
  cache.directory = directory_kind::set_associative;
  cache.retry.fails_after = 0;  // a file that cannot be read says nothing about the others
  const u32 space = data_.add_folder(files_);
  const u64 bytes = files_.line_space_bytes();
  const dataset_spec data{root, bytes, {volume_layout::single, {{&data_, space}}}, options.writable};
  cache_ = std::make_unique<line_cache>(on, std::vector{data}, cache);
  make_calls(options);
  make_table(files_of(options));
  view_.reader = cache_->array<u8>(0, 0, bytes).reader();
  view_.space_bytes = bytes;
}

void folder::make_calls(folder_options const& options) {
  using enum memory_kind;
  memory_resource& memory = on_.memory();
  const bool cuda = on_.kind() == executor_kind::cuda;
  slots_ = {memory, local, options.max_calls};
  records_ = {memory, shared, options.max_calls};
  calls_.add_buffer(records_.data(), records_.bytes());
  queue_options queue;
  queue.depth = std::clamp(std::bit_ceil(options.max_calls), 16u, 4096u);
  queue.timeout_ns = options.cache.timeout_ns;
  queue.rings_on_host = cuda;
  queue.poll_in_place = !cuda;
  std::vector<queue_pair_view<result_sink>> table;
  for (u32 q = 0; q < std::min(on_.units(), max_call_queues); ++q) {
    queues_.push_back(std::make_unique<queue_pair<result_sink>>(memory, calls_, static_cast<u16>(q + 1), queue));
    table.push_back(queues_.back()->view());
  }
  table_ = {memory, local, table.size()};
  table_.write(table);
  view_.calls.slots = slots_.data();
  view_.calls.records = records_.data();
  view_.calls.queues = table_.data();
  view_.calls.slots_count = options.max_calls;
  view_.calls.queues_count = static_cast<u32>(table.size());
  view_.calls.timeout_ns = 2 * options.cache.timeout_ns;
  view_.calls.opcode = call_controller::opcode;
}

void folder::make_table(u32 max_files) {
  memory_resource& memory = on_.memory();
  open_file_table& table = view_.table;
  table.buckets = static_cast<u32>(std::bit_ceil(ceil_div(2 * u64{max_files}, open_file_table::hints_per_bucket)));
  open_files_ = {memory, memory_kind::local, max_files};
  open_files_.write(std::vector<open_file>(max_files));
  hints_ = {memory, memory_kind::local, u64{table.buckets} * open_file_table::hints_per_bucket};
  renames_ = {memory, memory_kind::local, 1};
  std::random_device random;
  for (u64& key : table.hasher.key) key = u64{random()} << 32 | random();
  table.files = open_files_.data();
  table.hints = hints_.data();
  table.renames = renames_.data();
}

folder::~folder() {
  try {
    flush();
  } catch (error const& lost) {
    std::fprintf(stderr, "penstock: %s\n", lost.what());
  }
  bool all_let_go = true;
  for (auto const& queue : queues_) all_let_go &= queue->close();
  if (!all_let_go) records_.leak();  // which the host may still answer into
}

std::vector<u64> folder::read_sizes() const {
  std::vector<open_file> files(open_files_.size());
  open_files_.read(files);
  std::vector<u64> sizes;
  sizes.reserve(files.size());
  for (open_file const& file : files) sizes.push_back(file.size);
  return sizes;
}

void folder::flush() {
  if (!cache_->has_unflushed() && files_.open_files() == 0) return;
  cache_->flush();
  files_.finalize_sizes(read_sizes());
}

}  // namespace penstock
