// Histories of files by lone threads and emulated warps; and long ones through two folders, with the host between them.
#include "support/file_history.hpp"

#include "penstock/runtime/folder.hpp"
#include "support/run_everywhere.hpp"
#include "support/scratch_files.hpp"

#include <cstdlib>

namespace penstock::test {
namespace {

constexpr u64 line_bytes = 512;
constexpr u32 most_groups = 256;

/// `files`: that may be open at once; few of them, and places are soon used again.
folder_options tiny_cache(u32 files) {
  folder_options options;
  options.cache.bytes = 64 << 10;
  options.cache.line_bytes = line_bytes;
  options.writable = true;
  options.max_files = files;
  options.max_calls = 8;
  return options;
}

/// What a folder's groups replay next.
struct history_script {
  explicit history_script(u32 groups) : parts(groups), done(groups) {}

  void add(u32 group, file_history& from, u32 folder, u32 count, bool closes) {
    parts[group].first = steps.size();
    parts[group].expected = expected.size();
    std::vector<char> reads;
    const std::vector<history_step> more = from.next(folder, count, reads, closes);
    steps.insert(steps.end(), more.begin(), more.end());
    expected.insert(expected.end(), reads.begin(), reads.end());
    parts[group].last = steps.size();
  }
  void clear() {
    steps.clear();
    expected.clear();
    std::fill(done.begin(), done.end(), 0);
  }

  std::vector<history_part> parts;
  std::vector<history_step> steps;
  std::vector<char> expected;
  std::vector<u32> done;
};

class folder_of_histories {
 public:
  folder_of_histories(executor& on, std::string const& root, u32 groups, u32 spare_files = 0)
      : files_(on, root, tiny_cache(groups * history_step::handles + spare_files)),
        memory_(u64{groups} * 2 * folder_under_test::room), handles_(u64{groups} * history_step::handles) {}

  file_history_body body(history_script& script) {
    return {{files_.view(), memory_.data()}, script.parts.data(), script.steps.data(),
            script.expected.data(),          handles_.data(),     script.done.data()};
  }
  folder& files() { return files_; }

 private:
  folder files_;
  std::vector<char> memory_;
  std::vector<file_descriptor> handles_;
};

/// One phase, by groups of any kind.
struct one_phase : file_history_body {
  struct state {
    test_support::scratch_folder scratch;
    std::unique_ptr<executor> on = open_executor("cpu");
    folder_of_histories folder{*on, scratch.path(), most_groups};
    history_script script{most_groups};
    std::vector<file_history> histories;
  };
  std::shared_ptr<state> all = std::make_shared<state>();

  void prepare(run_shape shape) {
    all->script.clear();
    all->histories.clear();
    for (u32 k = 0; k < shape.groups; ++k) {
      all->histories.emplace_back(all->scratch.path(), k, shape.seed, line_bytes);
      for (u32 change = 0; change < 4; ++change) all->histories[k].change_on_host();
      all->script.add(k, all->histories[k], 0, 150, true);
    }
    static_cast<file_history_body&>(*this) = all->folder.body(all->script);
  }
  void verify(check_report& report, run_shape shape) const {
    for (u32 k = 0; k < shape.groups; ++k) {
      if (all->script.done[k] == 0) continue;
      EXPECT_EQ("", all->histories[k].compare_with_host());
    }
    for (auto const& file : std::filesystem::directory_iterator(all->scratch.path())) std::filesystem::remove(file);
    PENSTOCK_CHECK_EQ(report, 0u, all->folder.files().open_files());
  }
};

TEST(file_history, each_step_is_what_posix_says) { run_everywhere(one_phase(), for_waiting_threads); }

// PENSTOCK_HISTORY_STEPS: how many, over all threads.
TEST(file_history, two_folders_and_the_host_agree) {
  char const* const given = std::getenv("PENSTOCK_HISTORY_STEPS");
  const u64 wanted = given != nullptr ? std::strtoull(given, nullptr, 0) : yields_are_dear ? 40'000 : 400'000;
  constexpr u32 threads = 2, steps_a_phase = 40;
  const u64 seed = test_seed();
  test_support::scratch_folder scratch;
  const auto on = open_executor("cpu");
  const u32 spare = static_cast<u32>(wanted / 100'000);  // a place is used up after 65,534 files
  folder_of_histories folders[] = {{*on, scratch.path(), threads, spare}, {*on, scratch.path(), threads, spare}};
  std::atomic<u64> steps = 0;
  check_report report;
  run_threads(threads, [&](u32 thread) {
    file_history history(scratch.path(), thread, seed, line_bytes);
    history_script script(threads);
    for (u64 phase = 0; steps < wanted && device_ref<u32>(report.failures).load(relaxed) == 0; ++phase) {
      const u64 drawn = random_word(seed, 1000 + thread, phase);
      const u32 which = static_cast<u32>(drawn % 2);
      script.clear();
      script.add(thread, history, which, steps_a_phase, drawn / 2 % 4 == 0);
      folders[which].body(script)(lone_thread(), test_context{&report, {threads, threads, seed}, thread, thread});
      steps += script.steps.size();
      for (u64 k = drawn / 8 % 4; k != 0; --k) history.change_on_host();
      if (drawn / 64 % 16 != 0) continue;
      const std::string wrong = history.compare_with_host();
      ASSERT_EQ("", wrong) << "seed " << seed;
    }
  });
  expect_clean(report, "seed " + std::to_string(seed));
  RecordProperty("steps", std::to_string(steps));
}

}  // namespace
}  // namespace penstock::test
