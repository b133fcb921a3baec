#include "device/regular_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/run_everywhere.hpp"

#include <memory>
#include <numeric>

namespace penstock::test {
namespace {

using namespace regular;

#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr everywhere extent{.lone_threads = 2, .warps = 1, .partitions = 1};
#else
constexpr everywhere extent{.lone_threads = 3, .warps = 1, .partitions = 1};
#endif
constexpr u64 workers = 5;
constexpr u32 depth = 2;
constexpr u64 per_tile = 150;  // no multiple of a block: tiles share blocks

/// Media of numbers in front of which lies a header; queues, rooms and a cache anew for each run.
struct bed {
  bed() : numbers(9'000) {
    std::iota(numbers.begin(), numbers.end(), 3);
    model_options options;
    options.faults.reorder = true;
    model = std::make_unique<model_controller>(options);
    model->add_namespace(std::as_writable_bytes(std::span(numbers)));
    model->add_namespace(std::as_writable_bytes(std::span(written)));
  }

  void renew() {
    cache.reset();
    devices.clear();
    cache = std::make_unique<line_cache>(
        *on,
        std::vector<dataset_spec>{{"numbers", numbers.size() * 8, {volume_layout::single, {{model.get(), 1}}}},
                                  {"written", written.size() * 8, {volume_layout::single, {{model.get(), 2}}}, true}},
        cache_options{.bytes = 16 << 10, .line_bytes = 512, .queues = 2});
    views.clear();
    for (const u32 space : {1u, 2u}) {
      devices.push_back(std::make_unique<block_device>(
          *on, *model, space, block_device_options{.queues = 2, .queue_depth = 16, .first_queue_id = 2 * space + 1}));
      views.push_back(devices.back()->view());
    }
    next = 0;
    problem = 0;
    std::fill(std::begin(partials), std::end(partials), 0);
    written.assign(written.size(), 0);
  }

  tile_array array(u32 which, u64 origin) const { return {&views[which], 1, 9, most_tile_bytes, origin, 8}; }
  tile_rooms rooms() { return {requests.data(), requests.data() + requests.size() - 1, data.data(), &problem, 3 * depth}; }
  pieces cut(u64 elements) const { return {elements, per_tile, 16}; }

  std::vector<u64> numbers;
  std::vector<u64> written = std::vector<u64>(9'088);
  std::unique_ptr<executor> on = open_executor("cpu", 1);
  std::unique_ptr<model_controller> model;
  std::unique_ptr<line_cache> cache;
  std::vector<std::unique_ptr<block_device>> devices;
  std::vector<block_device_view> views;
  buffer<block_request> requests{on->memory(), memory_kind::local, tile_rooms::request_count(workers, 3 * depth)};
  buffer<u8> data{on->memory(), memory_kind::local, workers * 3 * depth * most_tile_bytes};
  std::vector<u64> scratch;
  u64 next = 0;
  u32 problem = 0;
  u64 partials[workers] = {};
};

constexpr u64 first_number = 16;   // of the array on the media
constexpr u64 elements_all = 701;  // no multiple of anything

/// A body over a bed: made anew by `make`, looked at by `look` when the run is over.
template <class Body>
struct on_bed : workers_body<Body> {
  std::shared_ptr<bed> media = std::make_shared<bed>();
  std::function<Body(bed&)> make;
  std::function<void(bed&, check_report&)> look;

  void prepare(run_shape) {
    media->renew();
    this->body = make(*media);
    this->workers = test::workers;
    this->next = &media->next;
  }
  void verify(check_report& report, run_shape) const {
    PENSTOCK_CHECK_EQ(report, 0u, media->problem);
    media->cache->check_faults();
    look(*media, report);
  }
};

template <class Body>
void run(std::function<Body(bed&)> make, std::function<void(bed&, check_report&)> look) {
  on_bed<Body> whole;
  whole.make = std::move(make);
  whole.look = std::move(look);
  run_everywhere(whole, extent);
}

void expect_sum(bed& b, check_report& report) {
  const auto from = b.numbers.begin() + first_number;
  PENSTOCK_CHECK_EQ(report, std::accumulate(from, from + elements_all, u64{0}),
                    std::accumulate(std::begin(b.partials), std::end(b.partials), u64{0}));
}

array_view<u64> view_of(bed& b) { return b.cache->array<u64>(0, 8 * first_number, elements_all); }

TEST(regular, every_way_finds_each_element_once) {
  using take = take_total<u64>;
  for (const bool in_turn : {false, true}) {
    run<take_elements<take>>(
        [=](bed& b) {
          const pieces cut = {elements_all, 32, 0};
          return take_elements<take>{view_of(b), cut, {cut.count(), workers, in_turn}, {b.partials}};
        },
        expect_sum);
    for (const u32 ahead : {0u, 3u}) {
      run<take_lines<take>>(
          [=](bed& b) {
            const pieces cut = {elements_all, 64, first_number};
            return take_lines<take>{view_of(b), cut, {cut.count(), workers, in_turn}, ahead, {b.partials}};
          },
          expect_sum);
    }
    run<take_tiles<take>>(
        [=](bed& b) {
          const pieces cut = b.cut(elements_all);
          return take_tiles<take>{
              b.array(0, 8 * first_number), cut, {cut.count(), workers, in_turn}, b.rooms(), depth, {b.partials}};
        },
        expect_sum);
  }
}

TEST(regular, columns_are_those_of_the_matrix_for_workers_alone_and_sharing) {
  constexpr u64 columns = 23;
  using take = take_columns<u64>;
  auto sums = std::make_shared<std::vector<u64>>();
  for (const u64 copies : {u64{1}, workers}) {
    const auto look = [=](bed& b, check_report& report) {
      for (u64 c = 0; c < columns; ++c) {
        u64 expected = 0, found = 0;
        for (u64 i = c; i < elements_all; i += columns) expected += b.numbers[first_number + i];
        for (u64 k = 0; k < copies; ++k) found += (*sums)[k * columns + c];
        if (!PENSTOCK_CHECK_EQ(report, expected, found)) return;
      }
    };
    const auto taker = [=] {
      sums->assign(copies * columns, 0);
      return take{sums->data(), copies, columns, copies < workers};
    };
    run<take_lines<take>>(
        [=](bed& b) {
          const pieces cut = {elements_all, 64, first_number};
          return take_lines<take>{view_of(b), cut, {cut.count(), workers, true}, 1, taker()};
        },
        look);
    run<take_tiles<take>>(
        [=](bed& b) {
          const pieces cut = b.cut(elements_all);
          return take_tiles<take>{b.array(0, 8 * first_number), cut, {cut.count(), workers, false}, b.rooms(), depth, taker()};
        },
        look);
  }
}

constexpr u64 other_number = 64;  // of b in the same namespace
constexpr u64 written_from = 64;  // element of c on its media: the edge of a block

void expect_added(bed& b, check_report& report) {
  b.cache->flush();
  for (u64 i = 0; i < elements_all; ++i) {
    const u64 expected = b.numbers[first_number + i] + b.numbers[other_number + i];
    if (!PENSTOCK_CHECK_EQ(report, expected, b.written[written_from + i])) return;
  }
}

// a on no block's edge, b and c on one; pieces of what goes by tiles are whole blocks.
TEST(regular, every_way_adds_and_writes_each_element_once) {
  const auto a = [](bed& b) { return view_of(b); };
  const auto other = [](bed& b) { return b.cache->array<u64>(0, 8 * other_number, elements_all); };
  const auto c = [](bed& b) { return b.cache->writable<u64>(1, 8 * written_from, elements_all); };
  for (const bool in_turn : {false, true}) {
    run<add_elements<u64>>(
        [=](bed& b) {
          const pieces cut = {elements_all, 32, 0};
          return add_elements<u64>{a(b), other(b), c(b), cut, {cut.count(), workers, in_turn}};
        },
        expect_added);
    run<add_lines<u64>>(
        [=](bed& b) {
          const pieces cut = {elements_all, 64, 0};
          b.scratch.assign(workers * cut.per_piece, 0);
          return add_lines<u64>{
              a(b), other(b), c(b), cut, {cut.count(), workers, in_turn}, in_turn ? 1u : 0u, b.scratch.data(), &b.problem};
        },
        expect_added);
    run<add_tiles<u64>>(
        [=](bed& b) {
          const pieces cut = {elements_all, 128, 0};
          return add_tiles<u64>{b.array(0, 8 * first_number),
                                b.array(0, 8 * other_number),
                                b.array(1, 8 * written_from),
                                cut,
                                {cut.count(), workers, in_turn},
                                b.rooms(),
                                depth};
        },
        expect_added);
  }
}

TEST(regular, a_tile_that_cannot_be_read_ends_the_run_with_its_status_and_writes_nothing) {
  bed b;
  b.renew();
  const pieces cut = {8'500, 1024, 0};
  const u64 end = b.numbers.size() * 8;
  const add_tiles<u64> body{b.array(0, end), b.array(0, 0), b.array(1, 512), cut, {cut.count(), 1, false}, b.rooms(), depth};
  body(lone_thread{}, {0, 1, 1});
  EXPECT_EQ(unpack_status(b.problem), make_status(failure::out_of_range));
  EXPECT_EQ(std::count(b.written.begin(), b.written.end(), 0u), static_cast<long>(b.written.size()));
}

TEST(regular, pieces_cover_an_array_once_and_workers_the_pieces) {
  for (const u64 elements : {u64{0}, u64{1}, u64{7}, u64{8}, u64{9}, u64{1000}}) {
    for (const u64 skip : {u64{0}, u64{3}, u64{7}}) {
      const pieces cut = {elements, 8, skip};
      u64 at = 0;
      for (u64 p = 0; p < cut.count(); ++p) {
        EXPECT_EQ(cut.first(p), at);
        EXPECT_GT(cut.last(p), at);
        at = cut.last(p);
      }
      EXPECT_EQ(at, elements);
      for (const bool in_turn : {false, true}) {
        const dealt work = {cut.count(), 3, in_turn};
        std::vector<u32> seen(cut.count());
        for (u64 w = 0; w < 3; ++w) {
          for (u64 k = 0; k < work.count(w); ++k) ++seen.at(work.piece(w, k));
        }
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), static_cast<long>(seen.size()));
      }
    }
  }
}

TEST(regular, sums_keep_what_rounding_would_lose) {
  running_sum<double> sum;
  for (const double v : {1e100, 1.0, -1e100, 0x1p-60}) sum.add(v);
  EXPECT_EQ(sum.value(), 1.0);
  running_sum<double> infinite;
  for (const double v : {1.0, HUGE_VAL, 1.0}) infinite.add(v);
  EXPECT_EQ(infinite.value(), HUGE_VAL);
  const std::int32_t negative[] = {-1, -2, 3, -4, 5, 6, 7, -8, 9, -10};
  EXPECT_EQ(static_cast<std::int64_t>(plain_sum(negative, 10, 0, 1)), 5);
  EXPECT_EQ(static_cast<std::int64_t>(plain_sum(negative, 10, 1, 3)), -2 + 5 - 8);
}

}  // namespace
}  // namespace penstock::test
