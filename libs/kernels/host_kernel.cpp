#include "libs/kernels/block_runner.hpp"
#include "libs/kernels/element_calls.hpp"
#include "libs/kernels/fatal_signals.hpp"
#include "libs/kernels/folder_calls.hpp"
#include "libs/kernels/launch_thread.hpp"
#include "libs/kernels/user_kernel.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/kernels/host_entry.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include <dlfcn.h>

namespace penstock::kernels {
namespace {

template <class Piece>
piece read_as(array_descriptor const& from, u64 address) {
  block_runner::come_to(from.runner, reader_of(from), address);
  piece read{};
  const Piece value = reader_of(from).read<Piece>(address);
  std::memcpy(&read, &value, sizeof value);
  return read;
}

piece read_element(array_descriptor const* from, u64 address, u32 bytes) {
  switch (bytes) {
    case 1: return read_as<penstock::u8>(*from, address);
    case 2: return read_as<penstock::u16>(*from, address);
    case 4: return read_as<penstock::u32>(*from, address);
    case 8: return read_as<penstock::u64>(*from, address);
    default: return read_as<piece16>(*from, address);
  }
}

void store(array_descriptor const* to, u64 address, u32 bytes, piece value) {
  block_runner::come_to(to->runner, reader_of(*to), address);
  store_element(*to, address, bytes, value);
}

u64 change(array_descriptor const* in, u64 address, u32 bytes, change_kind kind, u64 value, u64 expected) {
  if (in->memory == nullptr) block_runner::come_to(in->runner, reader_of(*in), address);
  const u64 before = change_element(*in, address, bytes, kind, value, expected);
  const bool is_taken = kind == change_kind::compare_exchange && std::memcmp(&before, &expected, std::min(bytes, 8u)) != 0;
  if (is_taken || (kind == change_kind::add && value == 0)) block_runner::try_again(in->runner);
  return before;
}

void call_folder_here(void const* folder, folder_request const* asked, folder_answer* given) {
  *given = call_folder(lone_thread{}, folder, *asked);
  if (given->error != 0) return;
  if (asked->op == folder_op::map && given->value != 0) block_runner::note_maps(1);
  if (asked->op == folder_op::unmap) block_runner::note_maps(-1);
}

/// A lane's share: its part of the span, rounded to 16 bytes.
void read_span_of_lane(array_descriptor const* from, u64 address, u64 bytes, void* to, u32 lane, u32 lanes) {
  const u64 share = (bytes / lanes + 16) / 16 * 16;
  const u64 begin = std::min<u64>(u64{lane} * share, bytes), end = std::min<u64>(begin + share, bytes);
  if (begin < end) read_span_by(lone_thread{}, *from, address + begin, end - begin, static_cast<std::byte*>(to) + begin);
}

void note_out_of_range(array_descriptor const* from, u64 index) {
  system_ref<u64> lowest(from->report->first_bad);
  u64 seen = lowest.load(relaxed);
  while (index < seen && !lowest.compare_exchange_weak(seen, index, relaxed, relaxed)) {}
}

constexpr host_calls calls{
    .read = read_element,
    .store = store,
    .change = change,
    .read_span = read_span_of_lane,
    .prefetch = [](array_descriptor const* from, u64 address) { prefetch_line_of(*from, address); },
    .out_of_range = note_out_of_range,
    .call_folder = call_folder_here,
    .wait = block_runner::wait,
};

/// Sets a word at a deadline, unless it goes away before.
class deadline {
 public:
  deadline(u32& word, u64 timeout_ns) : word_(word) {
    if (timeout_ns == 0) return;
    waiter_ = std::thread([this, timeout_ns] {
      std::unique_lock lock(mutex_);
      if (over_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return done_; })) return;
      system_ref<u32>(word_).store(1, relaxed);
    });
  }
  deadline(deadline const&) = delete;
  deadline& operator=(deadline const&) = delete;
  ~deadline() {
    if (!waiter_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_one();
    waiter_.join();
  }

 private:
  u32& word_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread waiter_;
};

/// A launch's parameters as the threads of one runner get them.
struct own_parameters {
  own_parameters(std::span<void* const> given, std::span<array_descriptor const> lent, u32 runner)
      : arrays(lent.begin(), lent.end()), all(given.begin(), given.end()) {
    u64 next = 0;
    for (void*& each : all) {
      if (next == lent.size() || each != static_cast<void const*>(&lent[next])) continue;
      arrays[next].runner = runner;
      each = &arrays[next++];
    }
  }

  std::vector<array_descriptor> arrays;
  std::vector<void*> all;
};

class host_kernel final : public user_kernel {
 public:
  host_kernel(executor& on, std::string const& name, std::string const& library) : on_(on), name_(name) {
    library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      char const* const why = ::dlerror();
      throw error(error_kind::world,
                  "load the kernel " + name + ": " + (why != nullptr ? why : "unknown") + ": compile it anew", ENOEXEC);
    }
    entry_ = static_cast<host_entry const*>(::dlsym(library_, "penstock_entry"));
    if (entry_ == nullptr || entry_->version != entry_version) {
      ::dlclose(library_);
      throw error(error_kind::world, "load the kernel " + name + ": " + library + " is of another version: compile it anew",
                  ENOEXEC);
    }
    entry_->bind(&calls);
    install_fatal_signals();
  }
  host_kernel(host_kernel const&) = delete;
  host_kernel& operator=(host_kernel const&) = delete;
  ~host_kernel() override { ::dlclose(library_); }

  executor& on() const override { return on_; }
  launch_facts facts(u32, u32) const override { return {.max_block_threads = max_block_threads, .units = on_.units()}; }
  void set_stopped(bool) override {}

  u64 parameter_bytes(u64 index) const override { return index < entry_->sizes.count ? entry_->sizes.bytes[index] : 0; }
  std::unique_ptr<launch_end> end_on(void*) override { return nullptr; }

  bool start(std::span<void* const> parameters, std::span<array_descriptor const> lent, launch_shape const& shape) override {
    check_shape(shape);
    u32 stop = 0;
    const deadline watch(stop, shape.timeout_ns);
    const auto in_time = [&] { return system_ref<u32>(stop).load(relaxed) == 0; };
    launch_thread* const beside = shape.check ? launch_thread::free_one() : nullptr;
    if (beside == nullptr) {
      run_blocks(parameters, lent, shape, stop);
      return in_time();
    }
    beside->start([&] { run_blocks(parameters, lent, shape, stop); });
    while (!beside->wait_for(check_every)) {
      try {
        shape.check();
      } catch (...) {
        system_ref<u32>(stop).store(1, relaxed);  // for threads that ask
        beside->finish();
        throw;
      }
    }
    if (const std::exception_ptr failure = beside->finish()) std::rethrow_exception(failure);
    return in_time();
  }

 private:
  struct was_stopped : std::exception {};
  static constexpr u32 max_block_threads = 1024;
  static constexpr u32 max_grid_x = 0x7fffffff, max_grid_yz = 65535;  // as a GPU's
  static constexpr u32 max_shared_bytes = 1 << 20;
  static constexpr auto check_every = std::chrono::milliseconds(50);

  /// Until the launch is stopped.
  void run_blocks(std::span<void* const> parameters, std::span<array_descriptor const> lent, launch_shape const& shape,
                  u32& stop) {
    try {
      run_all_blocks(parameters, lent, shape, stop);
    } catch (was_stopped const&) {}  // there may be more blocks than could be passed over one by one
  }

  void run_all_blocks(std::span<void* const> parameters, std::span<array_descriptor const> lent, launch_shape const& shape,
                      u32& stop) {
    static std::atomic<u64> launches{0};
    const u64 number = ++launches;
    const u64 blocks = u64{shape.grid.x} * shape.grid.y * shape.grid.z;
    on_.run(blocks, 1, [&](u64 first, u64 last) {
      const running_kernel named(name_.c_str());
      thread_local block_runner runner;
      own_parameters own(parameters, lent, runner.number());
      const block_launch launch{name_, *entry_, own.all.data(), on_.units(), number};
      std::vector<u64> shared((shape.shared_bytes + 7) / 8 + 2);
      const u64 unaligned = reinterpret_cast<std::uintptr_t>(shared.data()) % 16;
      for (u64 block = first; block < last; ++block) {
        if (system_ref<u32>(stop).load(relaxed) != 0) throw was_stopped();
        host_thread place;
        place.thread = {0, 0, 0};
        place.block = {static_cast<u32>(block % shape.grid.x), static_cast<u32>(block / shape.grid.x % shape.grid.y),
                       static_cast<u32>(block / shape.grid.x / shape.grid.y)};
        place.block_size = shape.block;
        place.grid_size = shape.grid;
        place.dynamic_shared = reinterpret_cast<std::byte*>(shared.data()) + (unaligned == 0 ? 0 : 16 - unaligned);
        place.stop = &stop;
        runner.run(launch, place);
      }
    });
  }

  void check_shape(launch_shape const& shape) const {
    const auto refuse = [&](std::string const& what) { throw_bad_input("launch", "the kernel " + name_, what); };
    const u64 threads = u64{shape.block.x} * shape.block.y * shape.block.z;
    if (threads == 0 || threads > max_block_threads) {
      refuse("a block of " + std::to_string(threads) + " threads: a block has 1 to " + std::to_string(max_block_threads));
    }
    if (shape.grid.x > max_grid_x || shape.grid.y > max_grid_yz || shape.grid.z > max_grid_yz) {
      refuse("a grid of " + std::to_string(shape.grid.x) + " x " + std::to_string(shape.grid.y) + " x " +
             std::to_string(shape.grid.z) + " blocks: it has up to 2^31 - 1 along x and 65535 along y and z");
    }
    if (shape.shared_bytes > max_shared_bytes) {
      refuse(std::to_string(shape.shared_bytes) + " bytes of shared memory: a block has up to " +
             std::to_string(max_shared_bytes));
    }
  }

  executor& on_;
  std::string name_;
  void* library_ = nullptr;
  host_entry const* entry_ = nullptr;
};

}  // namespace

host_calls const& calls_of_host() { return calls; }

std::unique_ptr<user_kernel> load_host_kernel(executor& on, std::string const& name, std::string const& library) {
  return std::make_unique<host_kernel>(on, name, library);
}

}  // namespace penstock::kernels
