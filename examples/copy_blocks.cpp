// Copies a file by threads that read and write blocks themselves, without a cache: several reads on their way in each thread,
// one wait for each, then the writes.
//
//   copy_blocks FROM TO [auto|cpu|cuda]
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/block_device.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

using namespace penstock;

constexpr u32 piece_bytes = 16384;  // of one command
constexpr u32 at_once = 4;          // commands of one thread

struct copy_pieces {
  block_device_view from, to;
  u64 workers;              // groups
  block_request* requests;  // at_once for each thread
  char* data;               // a piece for each request
  u32* problem;             // packed status of a command that failed

  // All lanes of a group call together; a lane past the end of the file wants nothing.
  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      const u64 step = workers * size(g) * at_once;
      for (u64 piece = worker * size(g) * at_once; piece < pieces(); piece += step) {
        const u64 thread = worker * size(g) + index_in(g);
        copy(g, piece + index_in(g) * at_once, requests + thread * at_once, data + thread * at_once * piece_bytes);
      }
    }
  }

  template <class Group>
  PENSTOCK_FN void copy(Group const& g, u64 first, block_request* mine, char* room) const {
    bool good[at_once];
    for (u32 k = 0; k < at_once; ++k) {
      submit_blocks(g, from, nvme::opcode::read, first + k < pieces(), mine[k], start(first + k), blocks(first + k),
                    reinterpret_cast<u64>(room + k * piece_bytes));
    }
    for (u32 k = 0; k < at_once; ++k) good[k] = ended(wait_blocks(g, from, first + k < pieces(), mine[k]));
    for (u32 k = 0; k < at_once; ++k) {
      submit_blocks(g, to, nvme::opcode::write, good[k] && first + k < pieces(), mine[k], start(first + k), blocks(first + k),
                    reinterpret_cast<u64>(room + k * piece_bytes));
    }
    for (u32 k = 0; k < at_once; ++k) ended(wait_blocks(g, to, good[k] && first + k < pieces(), mine[k]));
  }

  PENSTOCK_FN bool ended(status outcome) const {
    if (!outcome.ok()) device_ref<u32>(*problem).store(pack(outcome), relaxed);
    return outcome.ok();
  }
  PENSTOCK_FN u32 piece_blocks() const { return piece_bytes >> from.block_shift; }
  PENSTOCK_FN u64 pieces() const { return ceil_div(from.blocks, piece_blocks()); }
  PENSTOCK_FN lba start(u64 piece) const { return lba{piece * piece_blocks()}; }
  PENSTOCK_FN u32 blocks(u64 piece) const {
    const u64 left = from.blocks - piece * piece_blocks();
    return left < piece_blocks() ? static_cast<u32>(left) : piece_blocks();
  }
};

void copy_file(std::string const& from, std::string const& to, std::string const& executor_name) {
  const auto on = open_executor(executor_name);
  const bool cuda = on->kind() == executor_kind::cuda;
  software_options software;
  if (cuda) software.threads = 2;  // on the CPU whoever waits serves
  software_controller files(software);
  const u32 source = files.add_namespace({.path = from});
  std::ofstream(to, std::ios::trunc).close();
  std::filesystem::resize_file(to, std::filesystem::file_size(from));
  const u32 target = files.add_namespace({.path = to, .writable = true});

  block_device_options options;
  options.transfer_bytes = piece_bytes;
  options.queues = cuda ? 4 : 0;
  options.queue_depth = 256;
  const block_device source_device(*on, files, source, options);
  options.first_queue_id += source_device.view().queues_count;
  const block_device target_device(*on, files, target, options);

  const u64 workers = cuda ? 16 : 4 * on->units();
  const u64 threads = workers * (cuda ? 32 : 1);
  const buffer<block_request> requests(on->memory(), memory_kind::local, threads * at_once);
  const buffer<char> data(on->memory(), memory_kind::local, threads * at_once * piece_bytes);
  const buffer<u32> problem(on->memory(), memory_kind::local, 1);
  launch<32>(*on, workers,
             copy_pieces{source_device.view(), target_device.view(), workers, requests.data(), data.data(), problem.data()});
  u32 worst = 0;
  problem.read({&worst, 1});
  if (worst != 0) throw_status("copy", from + " to " + to, unpack_status(worst));
}

int main(int count, char** words) {
  if (count != 3 && count != 4) {
    std::fprintf(stderr, "usage: copy_blocks FROM TO [auto|cpu|cuda]\n");
    return 2;
  }
  try {
    copy_file(words[1], words[2], count == 4 ? words[3] : "auto");
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "copy_blocks: %s\n", problem.what());
    return 2;
  }
}
