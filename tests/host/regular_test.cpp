// The regular workloads over files and modelled drives, whole: what they compute, what they report, what they refuse.
#include "libs/regular/regular.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace penstock::test {
namespace {

using namespace regular;

class regular_test : public testing::Test {
 protected:
  regular_test() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-regular-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~regular_test() override { std::filesystem::remove_all(folder_); }

  static regular_options small() {
    regular_options options;
    options.executor = "cpu";
    options.threads = 2;
    options.repeats = 1;
    options.cache_bytes = 64 << 10;
    options.line_bytes = 512;
    return options;
  }

  template <class T>
  std::string write(std::string const& name, std::vector<T> const& values, std::vector<u64> const& shape, u64 offset) {
    const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
    const std::string header = offset == 0 ? "" : make_npy_header(kind, sizeof(T), shape, offset);
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    file.write(header.data(), static_cast<std::streamsize>(header.size()));
    file.write(reinterpret_cast<char const*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return folder_ + "/" + name;
  }

  template <class T>
  std::vector<T> read(std::string const& path) {
    const npy_header header = read_npy_header(path);
    std::vector<T> values(header.count());
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(header.data_offset));
    file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return values;
  }

  template <class T>
  static std::vector<T> numbers(u64 count) {
    std::vector<T> values(count);
    for (u64 i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<std::int64_t>(i * 2654435761 % 2000) - 900);
    return values;
  }

  template <class Run>
  static std::string refusal(Run const& run) {
    try {
      run();
    } catch (error const& e) {
      EXPECT_EQ(e.kind(), error_kind::bad_input) << e.what();
      return e.what();
    }
    return "accepted";
  }

  std::string folder_;
};

/// What every measurement of a run has.
void expect_measured(std::vector<bench::measurement> const& all, std::vector<std::string> const& ways) {
  ASSERT_EQ(all.size(), ways.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_TRUE(all[k].verified);
    EXPECT_EQ(all[k].params.at("access"), ways[k]);
    EXPECT_FALSE(all[k].baseline.empty());
    EXPECT_GT(all[k].details.at("seconds"), 0);
    EXPECT_FALSE(bench::to_json(all[k]).empty());
  }
}

const std::vector<std::string> all_ways = {"tiled", "naive", "line"};

template <class T>
void expect_total(reduce_result const& result, std::vector<T> const& values) {
  if constexpr (std::is_floating_point_v<T>) {
    EXPECT_EQ(result.number, std::accumulate(values.begin(), values.end(), 0.0));
  } else {
    u64 sum = 0;
    for (T const v : values) sum += static_cast<u64>(v);
    EXPECT_EQ(result.word, sum);
  }
  expect_measured(result.measurements, all_ways);
}

TEST_F(regular_test, totals_of_sizes_that_fit_nothing) {
  for (const u64 elements : {u64{0}, u64{1}, u64{63}, u64{64}, u64{8192}, u64{40'001}}) {
    for (const u64 offset : {u64{128}, npy_data_offset}) {
      for (char const* media : {"file", "none"}) {
        regular_options options = small();
        options.media = media;
        const auto values = numbers<double>(elements);
        expect_total(run_reduce(write("a.npy", values, {elements}, offset), false, options), values);
      }
    }
  }
}

TEST_F(regular_test, totals_of_all_types) {
  regular_options options = small();
  options.media = "none";
  options.drives = 3;
  const auto total = [&]<class T>(T) {
    const auto values = numbers<T>(9'001);
    expect_total(run_reduce(write("a.npy", values, {9'001}, 128), false, options), values);
  };
  total(std::int32_t{}), total(std::int64_t{}), total(std::uint32_t{}), total(std::uint64_t{}), total(float{}), total(double{});
}

TEST_F(regular_test, raw_words_need_their_type) {
  regular_options options = small();
  const auto values = numbers<std::uint64_t>(5'000);
  const std::string path = write("a.bin", values, {}, 0);
  EXPECT_NE(refusal([&] { run_reduce(path, false, options); }).find("magic"), std::string::npos);
  options.raw = "uint64";
  expect_total(run_reduce(path, false, options), values);
  options.raw = "float16";
  EXPECT_NE(refusal([&] { run_reduce(path, false, options); }).find("not supported"), std::string::npos);
  EXPECT_NE(refusal([&] { run_reduce(path, true, options); }).find("not supported"), std::string::npos);
}

TEST_F(regular_test, reports_what_was_moved) {
  regular_options options = small();
  options.in_flight = 2;
  const auto result = run_reduce(write("a.npy", numbers<double>(1 << 16), {1 << 16}, npy_data_offset), false, options);
  for (auto const& m : result.measurements) {
    // A cache so small may evict a line that a descheduled thread goes on reading, which fetches it once more: how often is the
    // scheduler's. Tiles are read once.
    EXPECT_GE(m.details.at("read_amplification"), 1) << m.params.at("access");
    if (m.params.at("access") == "tiled") {
      EXPECT_EQ(m.details.at("read_amplification"), 1);
    }
    EXPECT_DOUBLE_EQ(m.bytes.at("read"), m.details.at("read_amplification") * (8 << 16));
    EXPECT_GT(m.details.at("peak_read_gb_per_s"), 0);
  }
  options.media = "p5800x";
  options.drives = 2;
  const auto modelled = run_reduce(folder_ + "/a.npy", false, options);
  EXPECT_EQ(modelled.measurements[0].details.at("peak_read_gb_per_s"), 2 * 1.5e6 * 4096 * 1e-9);
  EXPECT_LT(modelled.measurements[0].details.at("of_ideal"), 1.1);
}

template <class T>
void expect_means(reduce_result const& result, std::vector<T> const& values, u64 columns) {
  ASSERT_EQ(result.means.size(), columns);
  const u64 rows = values.size() / columns;
  for (u64 c = 0; c < columns; ++c) {
    double sum = 0;
    for (u64 r = 0; r < rows; ++r) sum += static_cast<double>(values[r * columns + c]);
    EXPECT_DOUBLE_EQ(result.means[c], sum / static_cast<double>(rows)) << c;
  }
  expect_measured(result.measurements, all_ways);
}

TEST_F(regular_test, means_of_columns) {
  const std::pair<u64, u64> shapes[] = {{1, 1}, {5'000, 1}, {1, 5'000}, {700, 33}, {3, 9'000}, {40, 512}};
  for (auto const& [rows, columns] : shapes) {
    const auto doubles = numbers<double>(rows * columns);
    expect_means(run_reduce(write("a.npy", doubles, {rows, columns}, 128), true, small()), doubles, columns);
    const auto words = numbers<std::int32_t>(rows * columns);
    expect_means(run_reduce(write("b.npy", words, {rows, columns}, 128), true, small()), words, columns);
  }
}

TEST_F(regular_test, refuses_in_one_sentence_what_has_no_columns) {
  const auto said = [&](std::vector<u64> const& shape, u64 count) {
    const std::string path = write("a.npy", numbers<std::int64_t>(count), shape, 128);
    return refusal([&] { run_reduce(path, true, small()); });
  };
  EXPECT_NE(said({6}, 6).find("has 1 dimension: columns need two"), std::string::npos);
  EXPECT_NE(said({1, 2, 3}, 6).find("3 dimensions"), std::string::npos);
  EXPECT_NE(said({0, 3}, 0).find("at least one row"), std::string::npos);
  EXPECT_NE(said({3, 0}, 0).find("one column"), std::string::npos);
  const std::string path = write("b.npy", std::vector<std::int64_t>(4, std::int64_t{1} << 62), {4, 1}, 128);
  EXPECT_NE(refusal([&] { run_reduce(path, true, small()); }).find("more than 64 bits"), std::string::npos);
}

TEST_F(regular_test, refuses_options_that_cannot_be) {
  const std::string path = write("a.npy", numbers<double>(100), {100}, 128);
  const auto said = [&](auto change) {
    regular_options options = small();
    change(options);
    return refusal([&] { run_reduce(path, false, options); });
  };
  EXPECT_NE(said([](auto& o) { o.repeats = 0; }).find("repeats"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.tile_bytes = 100'000; }).find("tiles of"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.in_flight = 33; }).find("in flight"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.access = {"random"}; }).find("choose of tiled, naive, line"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.media = "tape"; }).find("tape"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.drives = 2; }).find("modelled"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.media = "none", o.drives = 17; }).find("17 drives"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.engine = "magic"; }).find("engine"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.directory = "magic"; }).find("directory"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.line_bytes = 1000; }).find("power of two"), std::string::npos);
  EXPECT_NE(said([](auto& o) { o.cache_bytes = 512; }).find("cache"), std::string::npos);
}

TEST_F(regular_test, access_that_is_not_asked_for_is_not_measured) {
  regular_options options = small();
  const std::string path = write("a.npy", numbers<double>(100), {100}, 128);
  options.access = {"tiled"};
  expect_measured(run_reduce(path, false, options).measurements, {"tiled"});
  options.access = {"line"};
  expect_measured(run_reduce(path, false, options).measurements, {"tiled", "line"});
}

TEST_F(regular_test, numbers_that_are_none_are_added_as_such) {
  const std::vector<double> values = {1, HUGE_VAL, 2};
  EXPECT_EQ(run_reduce(write("a.npy", values, {3}, 128), false, small()).number, HUGE_VAL);
  const std::vector<double> none = {1, std::nan(""), 2};
  EXPECT_TRUE(std::isnan(run_reduce(write("a.npy", none, {3}, 128), false, small()).number));
}

template <class T>
std::vector<T> added(std::vector<T> const& a, std::vector<T> const& b) {
  std::vector<T> c(a.size());
  for (u64 i = 0; i < a.size(); ++i) c[i] = static_cast<T>(a[i] + b[i]);
  return c;
}

TEST_F(regular_test, vectors_are_added_whatever_their_alignment) {
  for (const u64 elements : {u64{0}, u64{1}, u64{511}, u64{8192}, u64{50'003}}) {
    for (const u64 offset : {u64{128}, npy_data_offset}) {
      for (char const* media : {"file", "none"}) {
        regular_options options = small();
        options.media = media;
        options.drives = std::string(media) == "none" ? 3 : 1;
        const auto a = numbers<double>(elements), b = numbers<double>(elements + 1);
        const std::vector<double> other(b.begin() + 1, b.end());
        const std::string path_a = write("a.npy", a, {elements}, offset), path_b = write("b.npy", other, {elements}, 192);
        const auto result = run_vectoradd(path_a, path_b, folder_ + "/c.npy", true, options);
        EXPECT_EQ(read<double>(folder_ + "/c.npy"), added(a, other)) << elements << " " << offset << " " << media;
        expect_measured(result.measurements, all_ways);
      }
    }
  }
}

TEST_F(regular_test, tells_what_was_written) {
  regular_options options = small();
  const std::string a = write("a.npy", numbers<double>(1 << 15), {1 << 15}, npy_data_offset);
  const auto result = run_vectoradd(a, a, folder_ + "/c.npy", false, options);
  for (auto const& m : result.measurements) {
    // Whole lines and tiles are written once; a thread that writes elements may find its line gone to storage already.
    const double written = m.details.at("write_amplification");
    EXPECT_GE(written, 1);
    EXPECT_TRUE(written == 1 || m.params.at("access") == "naive") << m.params.at("access");
    EXPECT_GT(m.details.at("peak_write_gb_per_s"), 0);
  }
}

TEST_F(regular_test, modelled_drives_read_and_write_at_one_rate) {
  regular_options options = small();
  options.media = "p5800x";
  options.access = {"tiled"};
  const std::string a = write("a.npy", numbers<double>(9'000), {9'000}, 128);
  const auto result = run_vectoradd(a, a, folder_ + "/c.npy", false, options);
  EXPECT_DOUBLE_EQ(result.measurements[0].details.at("most_of_ideal"), 2.0 / 3);
}

TEST_F(regular_test, vectors_of_all_types_and_shapes_are_added) {
  const auto add = [&]<class T>(T) {
    const auto a = numbers<T>(3'000);
    const std::string path = write("a.npy", a, {30, 100}, 128);
    const auto result = run_vectoradd(path, path, folder_ + "/c.npy", true, small());
    EXPECT_EQ(read<T>(folder_ + "/c.npy"), added(a, a));
    EXPECT_EQ(read_npy_header(folder_ + "/c.npy").shape, (std::vector<u64>{30, 100}));
  };
  add(std::int32_t{}), add(std::int64_t{}), add(std::uint32_t{}), add(std::uint64_t{}), add(float{}), add(double{});
}

TEST_F(regular_test, refuses_in_one_sentence_what_cannot_be_added) {
  const std::string a = write("a.npy", numbers<double>(6), {6}, 128), b = write("b.npy", numbers<double>(6), {2, 3}, 128);
  const std::string f = write("f.npy", numbers<float>(6), {6}, 128), c = folder_ + "/c.npy";
  const auto said = [&](std::string const& one, std::string const& two, std::string const& out) {
    return refusal([&] { run_vectoradd(one, two, out, false, small()); });
  };
  EXPECT_NE(said(a, b, c).find("float64 of shape (6,) and float64 of shape (2, 3)"), std::string::npos);
  EXPECT_NE(said(a, f, c).find("float64 of shape (6,) and float32 of shape (6,)"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(c));
  EXPECT_NE(said(a, a, b).find("it exists"), std::string::npos);
  EXPECT_NE(said(a, a, folder_).find("no regular file"), std::string::npos);
  EXPECT_NE(refusal([&] { run_vectoradd(a, f, a, true, small()); }).find("alike"), std::string::npos);
  EXPECT_NE(refusal([&] { run_vectoradd(a, a, a, true, small()); }).find("is what is added"), std::string::npos);
  EXPECT_EQ(read<double>(a), numbers<double>(6));
}

TEST_F(regular_test, a_run_that_fails_leaves_no_file) {
  const std::string a = write("a.npy", numbers<double>(6), {6}, 128), c = folder_ + "/c.npy";
  regular_options options = small();
  options.progress = [](std::string const& what, u64, u64) {
    if (what == "tiled") throw std::runtime_error("stopped");
  };
  EXPECT_THROW(run_vectoradd(a, a, c, false, options), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(c));
}

}  // namespace
}  // namespace penstock::test
