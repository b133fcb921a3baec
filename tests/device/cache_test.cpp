#include "device/cache_test_body.hpp"

#include "penstock/controller/software_controller.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

struct cache_case {
  cache_shape shape;
  bool pins = false;
  bool ahead = false;
  u32 hot = 0;
};

constexpr u32 rounds = yields_are_dear ? 4 : 24;

class cache_reads_test : public testing::TestWithParam<std::tuple<directory_kind, cache_case>> {};

TEST_P(cache_reads_test, every_read_gives_the_bytes_that_lie_there) {
  auto const& [directory, test] = GetParam();
  stamped_media media(test.shape.media_bytes);
  model_controller model(shuffled());
  model.add_namespace(media.bytes());
  const auto on = open_executor("cpu", 1);
  on_fresh_cache<cached_reads_body> body;
  body.on = on.get();
  body.owner = &model;
  body.shape = with_directory(test.shape, directory);
  // Who holds a line must not wait for a set that others fill with theirs: room for all the lines of every set.
  if (test.pins && directory == directory_kind::set_associative) body.shape.frames = 140;
  body.rounds = rounds;
  body.hot = test.hot;
  body.pins = test.pins;
  body.ahead = test.ahead;
  run_everywhere(body, for_waiting_threads);
}

// From one frame that everyone fights for to frames for all; several line sizes; through bounce buffers; few hot lines.
const cache_case shapes[] = {{{.frames = 1}},
                             {{.frames = 2}},
                             {{.frames = 8}},
                             {{.frames = 8, .bounce = true}},
                             {{.frames = 8, .queues = 1, .depth = 2}},
                             {{.frames = 8, .queues = 3, .depth = 2, .bounce = true}},
                             {{.frames = 96}, true},
                             {{.frames = 96, .bounce = true}, true},
                             {{.frames = 16, .line_bytes = 4096, .media_bytes = 1 << 18}, false, true},
                             {{.frames = 8, .line_bytes = 16384, .media_bytes = 1 << 19}, false, true},
                             {{.frames = 64, .bounce = true}, false, true},
                             {{.frames = 200}, false, true},
                             {{.frames = 4}, false, false, 3},
                             {{.frames = 1}, false, false, 2}};
INSTANTIATE_TEST_SUITE_P(shapes, cache_reads_test,
                         testing::Combine(testing::ValuesIn(both_directories), testing::ValuesIn(shapes)),
                         [](auto const& test) {
                           return name_of(std::get<0>(test.param)) + "_" + std::to_string(test.index % std::size(shapes));
                         });

class cache_pins_test : public testing::TestWithParam<directory_kind> {};
INSTANTIATE_TEST_SUITE_P(directories, cache_pins_test, testing::ValuesIn(both_directories),
                         [](auto const& kind) { return name_of(kind.param); });

TEST_P(cache_pins_test, pins_of_a_group_are_all_or_nothing) {
  stamped_media media(1 << 16);
  model_controller model(shuffled());
  model.add_namespace(media.bytes());
  const auto on = open_executor("cpu", 1);
  on_fresh_cache<pins_together_body> body;
  body.on = on.get();
  body.owner = &model;
  // Three warps of 32 lines: enough for any two at once; in sets of seven, for the lines that fall into one.
  body.shape = with_directory({.frames = GetParam() == directory_kind::direct ? 96u : 140u}, GetParam());
  body.rounds = std::min(rounds, 10u);
  everywhere how = for_waiting_threads;
  how.warps = 3;
  run_everywhere(body, how);
}

}  // namespace
}  // namespace penstock::test
