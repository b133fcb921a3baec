// The client of `penstock bench model` and the kernels of `penstock bench latency`, which run under real warps on a GPU, under
// emulated ones.
#include "libs/bench/bare_queues.hpp"
#include "libs/bench/latency_kernels.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/emulated_warp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace penstock::test {
namespace {

/// A drive of known values, and whoever asks it.
class bare_client : public testing::Test {
 protected:
  static constexpr u64 bytes = 1 << 18;

  bare_client() : on_(open_executor("cpu", 1)), server_(*on_, {.units = 1}), drive_(server_.add_drive({})), media_(bytes / 8) {
    for (u64 w = 0; w < media_.size(); ++w) media_[w] = bench::value_at(w);
  }
  ~bare_client() override { server_.stop(); }

  void open(u32 block_bytes, u32 queues, u32 entries, u32 commands) {
    const u32 space = drive_.add_namespace(media_.data(), bytes, block_bytes);
    queues_ = std::make_unique<bench::bare_queues>(*on_, drive_,
                                                   bench::bare_options{space, block_bytes, queues, 1, entries, commands});
    data_.queues = queues_->view();
    data_.blocks = bytes / block_bytes;
    data_.wrong = &wrong_;
  }

  template <class Body>
  void run(Body const& body, u64 items, lane_mask mask) {
    const grid_range range{0, items, 1};
    run_emulated_warp(mask, [&](emulated_warp const& g) { body(g, range); });
  }

  std::unique_ptr<executor> on_;
  model_server server_;
  model_drive& drive_;
  std::vector<u64> media_;
  std::unique_ptr<bench::bare_queues> queues_;
  bench::bare_data data_;
  u64 wrong_ = 0;
};

TEST_F(bare_client, moves_every_word_over_several_laps_of_its_rings) {
  open(1024, 2, 32, 16);
  data_.batch = 4;
  data_.batches = 32;  // 128 commands on rings of 32
  data_.whole = true;
  server_.start();
  for (const lane_mask mask : {0xffffffffu, 0xffu, 0xff00u}) {
    std::vector<u64> known = media_;
    std::fill(media_.begin(), media_.end(), 0);
    data_.writes = true;
    run(bench::drive_queues{data_}, 2, mask);
    EXPECT_EQ(wrong_, 0u) << mask;
    EXPECT_EQ(media_, known) << mask;
    data_.writes = false;
    run(bench::drive_queues{data_}, 2, mask);
    EXPECT_EQ(wrong_, 0u) << mask;
  }
}

TEST_F(bare_client, sees_a_wrong_word_and_a_refused_command) {
  open(512, 1, 16, 8);
  data_.batch = 2;
  data_.batches = data_.blocks / 2;
  media_[1000] ^= 1;
  server_.start();
  data_.whole = true;
  run(bench::drive_queues{data_}, 1, 0xffffffff);
  EXPECT_EQ(wrong_, 1u);
  data_.blocks *= 2;  // half of them past the end
  wrong_ = 0;
  run(bench::drive_queues{data_}, 1, 0xffffffff);
  EXPECT_GE(wrong_, data_.blocks / 8);
}

TEST_F(bare_client, gives_up_on_a_drive_that_does_not_answer) {
  open(512, 1, 16, 8);
  data_.batch = 2;
  data_.batches = 4;
  data_.timeout_ns = 20 * one_millisecond_ns;
  run(bench::drive_queues{data_}, 1, 0xffffffff);  // the server was not started
  EXPECT_EQ(wrong_, 8u);
}

TEST_F(bare_client, times_each_command_whose_words_all_lanes_look_at) {
  open(4096, 1, 16, 1);
  bench::timed_samples samples(*on_, 50);
  server_.start();
  for (const bool writes : {false, true, false}) {
    data_.writes = writes;
    run(bench::time_commands{data_, samples.view()}, 1, 0xffffffff);
    EXPECT_EQ(wrong_, 0u) << writes;
    EXPECT_GT(samples.add_run(), 0);
  }
}

TEST_F(bare_client, misses_and_blocks_are_timed_beside_it) {
  constexpr u32 line = 2048;
  const u32 space = drive_.add_namespace(media_.data(), bytes, line);
  cache_options options;
  options.line_bytes = line;
  options.queues = 1;
  line_cache cache(*on_, {{"known values", bytes, {volume_layout::single, {{&drive_, space}}}}}, options);
  block_device_options queue;
  queue.queues = 1;
  queue.first_queue_id = 2;
  block_device device(*on_, drive_, space, queue);
  server_.start();
  bench::timed_samples first(*on_, 20), whole(*on_, 20);
  bench::time_misses misses{
      cache.array<u64>(0, 0, bytes / 8), line / 8, bytes / line, 0, 32, first.view(), whole.view(), &wrong_};
  run(misses, 1, 0xffffffff);
  EXPECT_EQ(cache.stats(0).fills, 20u);
  EXPECT_LE(first.add_run(), whole.add_run());
  std::vector<u64> block(line / 8);
  block_request request;
  run(bench::time_blocks{device.view(), &request, block.data(), line / 8, 0, first.view(), &wrong_}, 1, 0xffffffff);
  EXPECT_EQ(wrong_, 0u);
}

}  // namespace
}  // namespace penstock::test
