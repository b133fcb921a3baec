#include "device/model_server_test_body.hpp"

#include "penstock/controller/model_server.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

TEST(model_server_body, what_any_group_writes_it_reads_again) {
  const auto on = open_executor("cpu", 1);
  model_server_options options;
  options.units = 1;
  model_server server(*on, options);
  constexpr u32 bytes = 512, rounds = 2, most_threads = 96;
  stamped_media media(u64{most_threads} * rounds * bytes);
  model_drive& drive = server.add_drive({});
  drive.add_namespace(media.bytes().data(), media.size());
  queue_options queue;
  queue.depth = 16;
  queue_pair<result_sink> pair(cpu_memory(), drive, 1, queue);
  buffer<u32> words(cpu_memory(), memory_kind::local, 2 * most_threads);
  buffer<u64> data(cpu_memory(), memory_kind::local, most_threads * bytes / 8);
  server.start();
  run_everywhere(writes_body{pair.view(), words.data(), words.data() + most_threads, data.data(), bytes, rounds, 0}, {8, 2, 2});
  server.stop();
  EXPECT_EQ(pair.counts().strays, 0u);
  EXPECT_GT(drive.traffic().writes, 0u);
}

}  // namespace
}  // namespace penstock::test
