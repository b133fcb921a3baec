// A controller of one's own: values that lie in host memory as codes of one byte, and become float64 when a miss asks for them.
//
//   own_controller CODES        a file of bytes; prints the sum of a random sample of (code - 128) / 128
//
// A controller serves NVMe queues: it takes commands from a ring, answers Identify on queue 0, and moves data for Reads on the
// others. What is behind it is its own affair: a decoder, a generator, a remote store.
#include "penstock/core/copy_into_frame.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/host/error.hpp"
#include "penstock/nvme/command.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

using namespace penstock;

class decoder final : public controller {
 public:
  static constexpr u32 block_values = 512, block_bytes = block_values * sizeof(double);  // a page

  /// `threaded`: a thread of its own serves the queues. On the CPU the threads that wait poll them; a GPU's cannot.
  decoder(std::vector<u8> codes, bool threaded) : codes_(std::move(codes)), blocks_(ceil_div(codes_.size(), block_values)) {
    if (threaded) server_ = std::jthread([this](std::stop_token const& stop) { serve_all(stop); });
  }

  void attach(queue_rings const& rings) override {
    const std::lock_guard lock(mutex_);
    queues_[rings.id] = {rings};
  }
  void detach(u16 id) override {
    const std::lock_guard lock(mutex_);
    queues_.erase(id);
  }
  void poll(u16 id) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) serve(queues_.at(id));
  }
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override {
    return {.queues = 64, .queue_entries = 1024, .transfer_bytes = 65536, .is_polled = !server_.joinable()};
  }
  std::string engine() const override { return "decoding"; }

 private:
  struct queue {
    queue_rings rings{};
    u32 sq_head = 0, cq_tail = 0, phase = 1;
  };

  void serve_all(std::stop_token const& stop) {
    for (; !stop.stop_requested(); std::this_thread::yield()) {
      const std::lock_guard lock(mutex_);
      for (auto& [id, q] : queues_) serve(q);
    }
  }

  void serve(queue& q) {
    const u32 tail = system_ref<u32>(*q.rings.sq_doorbell).load(acquire);  // the commands before it are written
    while (q.sq_head != tail) {
      const u32 next = (q.cq_tail + 1) % q.rings.cq_entries;
      if (next == system_ref<u32>(*q.rings.cq_doorbell).load(acquire)) return;  // no room for a completion
      const nvme::submission_entry command = q.rings.sq[q.sq_head];
      q.sq_head = (q.sq_head + 1) % q.rings.sq_entries;
      const u16 outcome = q.rings.id == 0 ? identify(command) : read(command);
      nvme::completion_entry& entry = q.rings.cq[q.cq_tail];
      system_ref<u32>(entry.queue).store(q.sq_head | u32{q.rings.id} << 16, relaxed);
      system_ref<u32>(entry.outcome).store(nvme::make_outcome(command.command_id, q.phase, outcome), release);
      if (next == 0) q.phase ^= 1u;
      q.cq_tail = next;
    }
  }

  u16 identify(nvme::submission_entry const& command) const {
    if (command.opcode != static_cast<u8>(nvme::admin_opcode::identify)) return nvme::code::invalid_opcode;
    const nvme::identify_controller controller{.namespaces = 1};
    nvme::identify_namespace space{.attributes = 1};  // write protected
    space.blocks = space.capacity = space.utilization = blocks_;
    space.formats[0].block_shift = ceil_log2(block_bytes);
    const auto what = static_cast<nvme::identify_structure>(command.dword10);
    const bool of_space = what == nvme::identify_structure::name_space;
    if (!of_space && what != nvme::identify_structure::controller) return nvme::code::invalid_field;
    copy_into_frame(reinterpret_cast<void*>(command.prp1), of_space ? static_cast<void const*>(&space) : &controller,
                    sizeof space);
    return nvme::code::success;
  }

  u16 read(nvme::submission_entry const& command) const {
    const u64 first = value(nvme::starting_lba(command)), count = nvme::block_count(command);
    if (command.opcode != static_cast<u8>(nvme::opcode::read)) return nvme::code::invalid_opcode;
    if (first >= blocks_ || count > blocks_ - first) return nvme::code::lba_out_of_range;
    if (command.prp1 % nvme::page_bytes != 0) return nvme::code::invalid_prp_offset;  // a cache's buffers begin at pages
    for (u64 k = 0; k < count; ++k) {
      u64 page = command.prp1;
      if (k != 0) page = count == 2 ? command.prp2 : reinterpret_cast<u64 const*>(command.prp2)[k - 1];
      double values[block_values] = {};
      for (u64 v = 0, code = (first + k) * block_values; v < block_values && code < codes_.size(); ++v, ++code) {
        values[v] = (codes_[code] - 128.0) / 128;
      }
      copy_into_frame(reinterpret_cast<void*>(page), values, sizeof values);
    }
    return nvme::code::success;
  }

  std::vector<u8> codes_;
  u64 blocks_;
  std::mutex mutex_;
  std::map<u16, queue> queues_;
  std::jthread server_;
};

struct sum_sample {
  array_view<double> a;
  double* sum;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, grid_range range) const {
    double mine = 0;
    for (u64 i = range.first; i < range.last; i += range.step) mine += a[i * 2654435761 % a.size()];
    device_ref<double>(*sum).fetch_add(mine, relaxed);
  }
};

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: own_controller CODES\n"), 2;
  try {
    std::ifstream file(words[1], std::ios::binary);
    std::vector<u8> codes{std::istreambuf_iterator<char>(file), {}};
    const u64 size = codes.size();
    if (size == 0) throw_bad_input("open", words[1], "it gave no bytes: give a file with one for each value");
    auto on = open_executor("auto");
    decoder source(std::move(codes), on->kind() == executor_kind::cuda);
    line_cache cache(*on, {{words[1], size * sizeof(double), {volume_layout::single, {{&source, 1}}}}}, {.bytes = 1 << 20});
    buffer<double> sum(on->memory(), memory_kind::local, 1);
    launch<1>(*on, 1 << 16, sum_sample{cache.array<double>(0, 0, size), sum.data()});
    cache.check_faults();
    double total = 0;
    sum.read({&total, 1});
    std::printf("%.17g\n", total);
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "own_controller: %s\n", problem.what());
    return 2;
  }
}
