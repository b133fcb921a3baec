// Files by lone threads and emulated warps.
#include "device/folder_fixture.hpp"
#include "device/small_folder.hpp"
#include "support/run_everywhere.hpp"

#include "penstock/executor/executor.hpp"

#include <atomic>

namespace penstock::test {
namespace {

constexpr u32 most_groups = 256;

struct counted_log : shared_log_body {
  folder_fixture* fixture;
  std::shared_ptr<std::atomic<u32>> groups = std::make_shared<std::atomic<u32>>(0);

  counted_log(folder_under_test const& b, folder_fixture* f) : shared_log_body{b}, fixture(f) {}
  void prepare(run_shape shape) {
    *groups = 0;
    fixture->remove_log(shape);
  }
  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    if (is_leader(g)) groups->fetch_add(1);
    shared_log_body::operator()(g, c);
  }
  void verify(check_report& report, run_shape shape) const { fixture->check_log(report, shape, *groups); }
};

struct counted_once : written_once_body {
  folder_fixture* fixture;
  std::shared_ptr<std::atomic<u32>> groups = std::make_shared<std::atomic<u32>>(0);

  counted_once(folder_under_test const& b, folder_fixture* f) : written_once_body{b}, fixture(f) {}
  void prepare(run_shape shape) {
    *groups = 0;
    fixture->write_hosts_part(shape);
  }
  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    if (is_leader(g)) groups->fetch_add(1);
    written_once_body::operator()(g, c);
  }
  void verify(check_report& report, run_shape shape) const { fixture->check_written_once(report, shape, *groups); }
};

struct names_anew : shared_names_body {
  folder_fixture* fixture;

  names_anew(folder_under_test const& b, folder_fixture* f) : shared_names_body{b}, fixture(f) {}
  void prepare(run_shape) { fixture->remove_names(); }
  void verify(check_report& report, run_shape) const { PENSTOCK_CHECK_EQ(report, 0u, fixture->files().open_files()); }
};

class folder_test : public testing::TestWithParam<std::tuple<u64, io_engine>> {
 protected:
  std::unique_ptr<executor> on = open_executor("cpu");
  folder_fixture fixture{*on, most_groups, small_folder(std::get<0>(GetParam()), std::get<1>(GetParam()))};
};

TEST_P(folder_test, a_file_has_the_bytes_that_its_group_gave_it) {
  own_file_body body{fixture.bed()};
  run_everywhere(body, for_waiting_threads);
  EXPECT_EQ(0u, fixture.files().open_files());
}

TEST_P(folder_test, appended_records_are_there_once_each) {
  counted_log body(fixture.bed(), &fixture);
  run_everywhere(body, for_waiting_threads);
}

TEST_P(folder_test, what_is_written_once_leaves_the_bytes_beside_it_alone) {
  counted_once body(fixture.bed(), &fixture);
  run_everywhere(body, for_waiting_threads);
  EXPECT_EQ(0u, fixture.files().open_files());
}

TEST_P(folder_test, names_lead_nowhere_else) {
  names_body body{fixture.bed()};
  run_everywhere(body, for_waiting_threads);
}

TEST_P(folder_test, a_name_leads_to_the_file_that_got_it_last) {
  names_anew body(fixture.bed(), &fixture);
  run_everywhere(body, for_waiting_threads);
}

TEST_P(folder_test, maps_are_the_bytes_of_the_file) {
  mapped_records_body body{fixture.bed()};
  run_everywhere(body, for_waiting_threads);
  EXPECT_EQ(0u, fixture.files().open_files());
}

INSTANTIATE_TEST_SUITE_P(, folder_test,
                         testing::Combine(testing::Values(512, 4096), testing::Values(io_engine::automatic, io_engine::pread)));

// PENSTOCK_CROWD_ROUNDS: reads of each thread in the longest run.
TEST(folder_of_few_frames, each_read_ends) {
  const auto on = open_executor("cpu");
  folder_options options = small_folder(512, io_engine::automatic);
  options.cache.bytes = 16 * 512;  // one set
  folder_fixture fixture(*on, most_groups, options);
  run_everywhere(crowd_body{fixture.bed()}, for_waiting_threads);
  char const* const given = std::getenv("PENSTOCK_CROWD_ROUNDS");
  crowd_body longer{fixture.bed(), given != nullptr ? static_cast<u32>(std::atoll(given)) : 2000};
  run_lone(longer, 32, test_seed());
}

// Long lines, which take so long to read that threads lose them to others while they do.
TEST(folder_of_few_frames, reads_that_hit_have_the_bytes_of_their_line) {
  constexpr u64 line = 65536, lines = 20, words = line / sizeof(u64);
  const auto on = open_executor("cpu");
  test_support::scratch_folder scratch;
  std::vector<u64> content(lines * words);
  for (u64 w = 0; w < content.size(); ++w) content[w] = w / words;
  std::ofstream(scratch / "long", std::ios::binary)
      .write(reinterpret_cast<char const*>(content.data()), static_cast<std::streamsize>(content.size() * sizeof(u64)));
  folder_options options = small_folder(line, io_engine::automatic);
  options.cache.bytes = 16 * line;  // one set
  folder files(*on, scratch.path(), options);
  std::atomic<u64> wrong{0};
  std::vector<std::jthread> threads;
  for (u32 t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const lone_thread g;
      const open_result opened = files.view().open(g, "long", 4, file_flag::read);
      alignas(16) static thread_local u64 read[words];
      for (u32 round = 0; round < 3000; ++round) {
        const u64 k = random_word(7, t, round) % lines;
        if (files.view().pread(g, opened.file, read, line, k * line).value != line) ++wrong;
        wrong += static_cast<u64>(std::count_if(std::begin(read), std::end(read), [&](u64 word) { return word != k; }));
      }
      files.view().close(g, opened.file);
    });
  }
  threads.clear();
  EXPECT_EQ(0u, wrong.load());
}

}  // namespace
}  // namespace penstock::test
