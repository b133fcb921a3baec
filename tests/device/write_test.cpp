#include "device/write_test_body.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/queue_service.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

constexpr u32 rounds = yields_are_dear ? 3 : 8;

/// Bodies over media that is made anew for each run, and must hold what they say when the cache has been flushed.
template <class Body>
struct on_fresh_media : Body {
  cache_shape shape;
  bool served = false;  ///< by a queue_service, which cleans in the background
  std::shared_ptr<executor> on = open_executor("cpu", 1);
  std::shared_ptr<stamped_media> media{};
  std::shared_ptr<model_controller> model{};
  std::shared_ptr<cache_fixture> fixture{};
  std::shared_ptr<queue_service> service{};
  std::shared_ptr<std::vector<u32>> times{};

  void prepare(run_shape) {
    service.reset();
    fixture.reset();
    shape.writable = true;
    media = std::make_shared<stamped_media>(shape.media_bytes);
    model = std::make_shared<model_controller>(shuffled());
    model->add_namespace(media->bytes());
    fixture = std::make_shared<cache_fixture>(*on, *model, 1, shape);
    times = std::make_shared<std::vector<u32>>(shape.media_bytes / 8);
    this->words = fixture->writable();
    if constexpr (requires { this->last; }) this->last = times->data();
    if constexpr (requires { this->added; }) this->added = times->data();
    line_cache& cache = fixture->cache();
    if constexpr (requires { this->bytes; }) this->bytes = cache.writable<u8>(0, 0, shape.media_bytes);
    if constexpr (requires { this->halves; }) {
      this->halves = cache.writable<u32>(0, 0, shape.media_bytes / 4);
      this->floats = cache.writable<float>(0, 0, shape.media_bytes / 4);
      this->doubles = cache.writable<double>(0, 0, shape.media_bytes / 8);
      this->ints = cache.writable<int>(0, 0, shape.media_bytes / 4);
      for (u64 k = 0; k < 8; ++k) cache.writable<u64>(0, 0, shape.media_bytes / 8).write(k * Body::apart, k == 5 ? ~0ull : 0);
    }
    if (!served) return;
    service = std::make_shared<queue_service>(*on, cache, queue_service_options{.units = 1});
    service->start();
  }

  void verify(check_report& report, run_shape run) {
    if (service) service->stop();
    fixture->cache().check_faults();
    fixture->flush();
    fixture->check_at_rest(report);
    if constexpr (requires { this->last; }) {
      for (u64 i = 0; i < times->size(); ++i) PENSTOCK_CHECK_EQ(report, written(i, (*times)[i]), media->words()[i]);
    } else if constexpr (requires { this->added; }) {
      for (u64 i = 0; i < times->size(); ++i) PENSTOCK_CHECK_EQ(report, Body::expected(i, (*times)[i]), media->words()[i]);
    } else {
      check_counts(report, run);
    }
  }

  void check_counts(check_report& report, run_shape run) {
    const auto at = [&](u64 k) { return media->words()[k * Body::apart]; };
    const u64 changes = at(0);  // which threads there are differs from run to run
    PENSTOCK_CHECK(report, changes >= this->rounds && changes <= u64{run.threads} * this->rounds);
    PENSTOCK_CHECK_EQ(report, 3 * changes, at(1));
    PENSTOCK_CHECK_EQ(report, changes, at(2));
    PENSTOCK_CHECK_EQ(report, std::bit_cast<u32>(static_cast<float>(changes)), static_cast<u32>(at(3)));
    PENSTOCK_CHECK_EQ(report, std::bit_cast<u64>(0.5 * static_cast<double>(changes)), at(4));
    PENSTOCK_CHECK(report, at(5) % 2 == 1 && at(5) != ~0ull);
    const int least = static_cast<int>(static_cast<u32>(at(6)));
    PENSTOCK_CHECK(report, least < 0 && least >= -static_cast<int>(run.threads));
    PENSTOCK_CHECK_EQ(report, changes, at(7));
  }
};

// From two frames that everyone fights for to frames for all; several line sizes; through bounce buffers; a slot for one
// command at a time. Every other one has a cleaner in the background.
const cache_shape shapes[] = {
    {.frames = 2},
    {.frames = 8},
    {.frames = 8, .bounce = true},
    {.frames = 16, .line_bytes = 4096, .media_bytes = 1 << 18},
    {.frames = 16, .queues = 1, .depth = 2, .write_back = {.commands = 1}},
    {.frames = 14, .line_bytes = 16384, .media_bytes = 1 << 19},
    {.frames = 64, .write_back = {.most_dirty = 0.02, .command_bytes = 512}},
    {.frames = 160, .write_back = {.most_dirty = 1}},
};

class write_test : public testing::TestWithParam<std::tuple<directory_kind, u32>> {
 protected:
  template <class Body>
  on_fresh_media<Body> make() {
    auto const& [directory, number] = GetParam();
    on_fresh_media<Body> body;
    body.shape = with_directory(shapes[number], directory);
    body.served = number % 2 == 1;
    body.rounds = rounds;
    return body;
  }
};
INSTANTIATE_TEST_SUITE_P(shapes, write_test,
                         testing::Combine(testing::ValuesIn(both_directories), testing::Range(0u, u32{std::size(shapes)})),
                         [](auto const& test) {
                           return name_of(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

TEST_P(write_test, elements_hold_what_was_stored_last) { run_everywhere(make<written_elements_body>(), for_waiting_threads); }

TEST_P(write_test, a_block_stores_as_a_warp_does) {
  auto body = make<written_elements_body>();
  body.rounds = 2;
  run_block(body, 40, test_seed());
}

TEST_P(write_test, neighbours_on_one_line_keep_their_bytes) {
  auto body = make<written_elements_body>();
  body.span = 256;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, changes_of_one_element_are_one_after_another) {
  auto body = make<counted_elements_body>();
  body.rounds = rounds / 3;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, lanes_that_part_change_and_read) {
  auto body = make<parted_lanes_body>();
  body.names = true;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, runs_of_elements_are_written_whole) {
  auto body = make<written_spans_body>();
  body.longest = 5 * body.shape.line_bytes / 16;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, runs_of_all_lanes_are_written_together) {
  auto body = make<written_batches_body>();
  body.rounds = 2;  // of as many runs as there are lanes
  body.longest = body.shape.line_bytes / 8 + 3;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, runs_of_all_lanes_are_added_to_together) {
  auto body = make<added_batches_body>();
  body.rounds = 2;  // of as many runs as there are lanes
  body.longest = body.shape.line_bytes / 8 + 3;
  run_everywhere(body, for_waiting_threads);
}

TEST_P(write_test, runs_of_elements_are_added_to) {
  auto body = make<added_spans_body>();
  if (body.shape.frames >= 160) body.rounds *= 20;  // no line is waited for: two threads meet at an element now and then
  body.longest = 5 * body.shape.line_bytes / 16;
  run_everywhere(body, for_waiting_threads);
}

}  // namespace
}  // namespace penstock::test
