// Completion by service, on the CPU executor: threads move the queues, and who waits leaves them alone.
#include "penstock/write_back/queue_service.hpp"
#include "penstock/runtime/queue_service.hpp"

#include "device/async_read_test_body.hpp"
#include "support/faulty_cache.hpp"

#include <chrono>
#include <thread>

namespace penstock::test {
namespace {

using queue_service_test = faulty_cache;
PENSTOCK_UNDER_BOTH_DIRECTORIES(queue_service_test);

struct lone_pause {
  void reset() {}
  void wait() { std::this_thread::yield(); }
};

struct served_reads : on_fresh_cache<async_reads_body> {
  std::shared_ptr<queue_service> service;

  void prepare(run_shape run) {
    service.reset();
    on_fresh_cache::prepare(run);
    service = std::make_shared<queue_service>(*on, fixture->cache(), queue_service_options{.units = 2});
    service->start();
  }
  void verify(check_report& report, run_shape run) {
    service->stop();
    PENSTOCK_CHECK_EQ(report, 0u, device_ref<u32>(*fixture->cache().view().serving).load(relaxed));
    on_fresh_cache::verify(report, run);
  }
};

TEST_P(queue_service_test, reads_are_right_while_it_runs) {
  model_options options;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  model_controller model(options);
  model.add_namespace(media_.bytes());
  const cache_shape shapes[] = {
      {.frames = 1}, {.frames = 32, .queues = 1, .depth = 4}, {.frames = 64, .bounce = true}, {.frames = 200}};
  for (cache_shape const& shape : shapes) {
    served_reads body;
    body.on = on_.get();
    body.owner = &model;
    body.shape = with_directory(shape, GetParam());
    body.rounds = 1;
    run_everywhere(body, {.lone_threads = 3, .warps = 1, .partitions = 1});
  }
}

// The controller works only when somebody moves its queue: while a service is said to run, that is nobody until the last look.
TEST_P(queue_service_test, who_waits_leaves_the_queues_alone) {
  for (const bool served : {false, true}) {
    make({.frames = 64, .timeout_ns = 20 * one_millisecond_ns});
    device_ref<u32>(*view().serving).store(served ? 1 : 0, relaxed);
    u32 looks = 0;
    controller_.answer([&looks](u64) { return verdict{0, ++looks < 5}; });
    const u64 begin = now_ns();
    const status outcome = read(5);
    if (served) {
      EXPECT_LE(looks, 2u) << "the last look, and the one before an expiry";
      EXPECT_GE(now_ns() - begin, 2 * 20 * one_millisecond_ns) << "its own patience";
      EXPECT_FALSE(outcome.ok());
    } else {
      EXPECT_EQ(5u, looks);
      EXPECT_EQ(status{}, outcome);
    }
    device_ref<u32>(*view().serving).store(0, relaxed);
    controller_.serve_all();
    drive_until([&] { return state_of(5) != line_state::filling; });
  }
}

TEST_P(queue_service_test, what_it_leaves_behind_is_waited_for_inline) {
  constexpr u64 timeout_ns = 3 * one_second_ns;
  make({.frames = 64, .timeout_ns = timeout_ns});
  queue_service service(*on_, cache(), {.idle_timeout_ns = 2 * one_millisecond_ns});
  service.start();
  ASSERT_TRUE(wait_until([&] { return service.gave_up(); }));
  EXPECT_FALSE(service.running());
  const u64 begin = now_ns();
  EXPECT_EQ(status{}, read(7));
  EXPECT_LT(now_ns() - begin, timeout_ns) << "not by its last look";
  service.stop();
  service.start();
  EXPECT_EQ(status{}, read(8));
  service.stop();
  EXPECT_EQ(status{}, read(9));
  expect_at_rest();
}

// Server 0 has nothing to do: the word is the other one's.
TEST(queue_service, stays_while_any_of_its_servers_works) {
  stamped_media media(1 << 16);
  scripted_controller controller(media.bytes());
  const auto on = open_executor("cpu", 1);
  cache_fixture fixture(*on, controller, 1, {.frames = 8, .queues = 2});
  service_control control;
  service_shared shared;
  shared.last_work_ns = now_ns() + one_second_ns;  // as if the other had moved something in a second
  std::thread server([&] {
    lone_pause idle;
    serve_cache_queues(lone_thread{}, fixture.cache().view(), control, shared, 0, 2, 2 * one_millisecond_ns, idle);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(0u, system_ref<u32>(control.left).load(acquire));
  system_ref<u32>(control.stop).store(1, release);
  server.join();
}

TEST(queue_service, refuses_to_be_of_nobody) {
  stamped_media media(1 << 16);
  scripted_controller controller(media.bytes());
  const auto on = open_executor("cpu", 1);
  cache_fixture fixture(*on, controller, 1, {.frames = 8});
  try {
    const queue_service service(*on, fixture.cache(), {.units = 0});
    FAIL();
  } catch (error const& refused) {
    EXPECT_EQ(error_kind::bad_input, refused.kind());
    EXPECT_STREQ("start a queue service: no units: ask for one or more", refused.what());
  }
}

}  // namespace
}  // namespace penstock::test
