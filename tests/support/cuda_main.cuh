// The runner of tests/device/*.cu: registers tests, runs them, prints one line for each. No framework, so nvcc compiles little.
//
//   PENSTOCK_CUDA_TEST(name) { launch({blocks, threads}, kernel, &report, ...); }   // `report` is readable on both sides
//
// Exit status: 0 all passed, 1 a failure, 77 no CUDA device, 124 the time limit. `program part` runs tests named *part*.
// PENSTOCK_TEST_SCALE=n divides warps by n and multiplies time limits: what checks every access makes it a hundred times
// slower. PENSTOCK_TEST_ALONE=1 leaves out tests of kernels beside each other: compute-sanitizer lets one wait for the other.
// PENSTOCK_TEST_SHARD=i/n runs every n-th test, from the i-th on (0 <= i < n), for n programs that share the work.
#pragma once

#include "penstock/core/clock.hpp"
#include "support/check.hpp"
#include "support/test_context.hpp"

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

/// Seconds for all tests of a program together.
#ifndef PENSTOCK_CUDA_TEST_LIMIT_S
#define PENSTOCK_CUDA_TEST_LIMIT_S 600
#endif

namespace penstock::test {

struct cuda_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require_cuda(cudaError_t error, char const* what, std::source_location at = std::source_location::current()) {
  if (error == cudaSuccess) return;
  throw cuda_failure(std::string(what) + " at line " + std::to_string(at.line()) + ": " + cudaGetErrorName(error) + ": " +
                     cudaGetErrorString(error));
}

struct launch_shape {
  dim3 blocks;
  dim3 threads;
  std::source_location at;

  launch_shape(dim3 blocks_, dim3 threads_, std::source_location at_ = std::source_location::current())
      : blocks(blocks_), threads(threads_), at(at_) {}
};

/// Where test kernels run: a stream that waits for no other, so that a test may have a resident kernel beside them.
inline cudaStream_t test_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    require_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return made;
  }();
  return stream;
}

/// Runs a kernel to its end; a kernel that did not launch or did not end well is a failure of the test.
template <class... Parameters, class... Arguments>
void launch(launch_shape const& shape, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<shape.blocks, shape.threads, 0, test_stream()>>>(arguments...);
  require_cuda(cudaGetLastError(), "launch", shape.at);
  require_cuda(cudaStreamSynchronize(test_stream()), "kernel", shape.at);
}

/// Zeroed memory that both sides read: the host when no kernel runs. T is trivially copyable.
template <class T>
class shared_memory {
 public:
  explicit shared_memory(std::size_t n) : size_(n) {
    require_cuda(cudaMallocManaged(&data_, n * sizeof(T)), "cudaMallocManaged");
    std::memset(static_cast<void*>(data_), 0, n * sizeof(T));
  }
  ~shared_memory() { cudaFree(data_); }
  shared_memory(shared_memory const&) = delete;
  shared_memory& operator=(shared_memory const&) = delete;

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

struct cuda_test {
  char const* name;
  void (*run)(check_report& report);
  bool beside;  ///< has a kernel that stays while others run
};

inline std::vector<cuda_test>& cuda_tests() {
  static std::vector<cuda_test> tests;
  return tests;
}

struct cuda_test_registration {
  cuda_test_registration(char const* name, void (*run)(check_report&), bool beside) {
    cuda_tests().push_back({name, run, beside});
  }
};

/// Printed with a failure where it matters; PENSTOCK_TEST_SEED=n repeats a run.
inline u64 cuda_test_seed() {
  static const u64 seed = [] {
    char const* given = std::getenv("PENSTOCK_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : scatter(static_cast<u64>(getpid()));
  }();
  return seed;
}

inline u32 cuda_test_scale() {
  static const u32 scale = [] {
    char const* given = std::getenv("PENSTOCK_TEST_SCALE");
    return given != nullptr ? std::max(1u, static_cast<u32>(std::strtoul(given, nullptr, 0))) : 1u;
  }();
  return scale;
}
inline u32 scaled_warps(u32 warps) { return std::max(4u, warps / cuda_test_scale() / 4 * 4); }
inline u64 scaled_time(u64 ns) { return ns * cuda_test_scale(); }

inline char const* volatile running_cuda_test = "start";

/// A kernel that hangs cannot be stopped from here: say which one it is and leave.
inline void on_time_limit(int) {
  static constexpr char before[] = ": FAILED: time limit\n";
  char const* name = running_cuda_test;
  if (write(STDOUT_FILENO, name, std::strlen(name)) < 0 || write(STDOUT_FILENO, before, sizeof before - 1) < 0) _exit(125);
  _exit(124);
}

inline bool run_cuda_test(cuda_test const& test) {
  running_cuda_test = test.name;
  std::string failure;
  const u64 start = now_ns();
  try {
    const shared_memory<check_report> report(1);
    test.run(report[0]);
    require_cuda(cudaDeviceSynchronize(), "end of the test");
    check_report const& r = report[0];
    if (r.used == 0) failure = "no check has run";
    if (r.failures != 0) {
      failure = "line " + std::to_string(r.first_line) + " expected " + std::to_string(r.expected) + " found " +
                std::to_string(r.found) + " (failed checks: " + std::to_string(r.failures) + ")";
    }
  } catch (std::exception const& error) {
    failure = error.what();
  }
  if (failure.empty()) {
    std::printf("%s: ok (%llu ms)\n", test.name, static_cast<unsigned long long>((now_ns() - start) / one_millisecond_ns));
  } else {
    std::printf("%s: FAILED %s, seed %llu\n", test.name, failure.c_str(), static_cast<unsigned long long>(cuda_test_seed()));
  }
  std::fflush(stdout);
  return failure.empty();
}

/// PENSTOCK_TEST_SHARD; without it the one of one.
struct test_shard {
  u32 index = 0, count = 1;
};
inline test_shard cuda_test_shard() {
  test_shard shard;
  char const* given = std::getenv("PENSTOCK_TEST_SHARD");
  if (given != nullptr && (std::sscanf(given, "%u/%u", &shard.index, &shard.count) != 2 || shard.index >= shard.count)) {
    throw std::invalid_argument(std::string("PENSTOCK_TEST_SHARD is '") + given + "': write i/n, with i less than n");
  }
  return shard;
}

inline int cuda_main(int argc, char** argv) {
  // A kernel that is loaded at its first launch waits for those that run, and a resident one never ends.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // likewise one that shares a hardware queue with it
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device: skipped\n");
    return 77;
  }
  std::signal(SIGALRM, on_time_limit);
  alarm(PENSTOCK_CUDA_TEST_LIMIT_S);
  const test_shard shard = cuda_test_shard();
  u32 passed = 0, failed = 0, place = 0;
  for (cuda_test const& test : cuda_tests()) {
    if (place++ % shard.count != shard.index) continue;
    if (argc > 1 && std::strstr(test.name, argv[1]) == nullptr) continue;
    if (test.beside && std::getenv("PENSTOCK_TEST_ALONE") != nullptr) {
      std::printf("%s: not run, it has two kernels at once\n", test.name);
      continue;
    }
    ++(run_cuda_test(test) ? passed : failed);
  }
  std::printf("%u passed, %u failed\n", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace penstock::test

#define PENSTOCK_CUDA_TEST_AS(name, beside)                                                                 \
  static void cuda_test_##name(::penstock::test::check_report& report);                                     \
  static const ::penstock::test::cuda_test_registration registered_##name(#name, cuda_test_##name, beside); \
  static void cuda_test_##name([[maybe_unused]] ::penstock::test::check_report& report)

#define PENSTOCK_CUDA_TEST(name) PENSTOCK_CUDA_TEST_AS(name, false)
/// Has a kernel that stays while others run.
#define PENSTOCK_CUDA_TEST_BESIDE(name) PENSTOCK_CUDA_TEST_AS(name, true)

/// Weak: all .cu files of a program include this one.
__attribute__((weak)) int main(int argc, char** argv) { return penstock::test::cuda_main(argc, argv); }
