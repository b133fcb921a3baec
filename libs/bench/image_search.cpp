#include "libs/bench/collage.hpp"
#include "libs/bench/collage_host.hpp"
#include "libs/graph/file.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/lsh/find_within.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace penstock::bench {
namespace {

constexpr u32 image_numbers = 1024;
constexpr u64 image_bytes = image_numbers * sizeof(float);

/// Sets of random images in files, and queries of which each but the first tenth is near one of them.
class image_sets {
 public:
  explicit image_sets(image_search_options const& options) {
    std::string pattern =
        ((options.folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(options.folder)) /
         "penstock_images_XXXXXX")
            .string();
    if (mkdtemp(pattern.data()) == nullptr) throw_os_error("make a folder", pattern, errno, "name another with --folder");
    path = pattern;
    std::vector<float> images(options.images * image_numbers);
    queries.resize(u64{options.queries} * image_numbers);
    for (u32 s = 0; s < options.sets; ++s) {
      names.push_back("set" + std::to_string(s));
      for (u64 k = 0; k < images.size(); ++k) images[k] = level_of(s, k);
      graph::file::create(path + "/" + names.back()).write(0, std::as_bytes(std::span(images)));
    }
    for (u32 q = 0; q < options.queries; ++q) {
      const u64 set = mix_word(q) % options.sets, image = mix_word(~u64{q}) % options.images;
      const bool is_known = q >= options.queries / 10;
      for (u32 d = 0; d < image_numbers; ++d) {
        const float at = is_known ? level_of(static_cast<u32>(set), image * image_numbers + d) : level_of(~q, d);
        queries[q * image_numbers + d] = at + static_cast<float>(mix_word(q * image_numbers + d) % 3);
      }
    }
  }
  image_sets(image_sets const&) = delete;
  image_sets& operator=(image_sets const&) = delete;
  ~image_sets() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::string path;
  std::vector<std::string> names;
  std::vector<float> queries;
  static constexpr float distance = 100;  // of a query from its image: at most 64; of two images about 3300

 private:
  static float level_of(u32 set, u64 k) { return static_cast<float>(mix_word(u64{set} << 40 ^ k) % 256); }
};

std::vector<u64> search_images_on_host(image_sets const& sets, u64 images, u32 threads) {
  std::vector<u64> found(sets.queries.size() / image_numbers, lsh::no_match);
  std::vector<std::unique_ptr<mapped_file>> mapped;
  mapped.reserve(sets.names.size());
  for (auto const& name : sets.names) mapped.push_back(std::make_unique<mapped_file>(sets.path + "/" + name));
  graph::progress_meter quiet;
  graph::parallel_for(found.size(), threads, quiet, [&](u64 q) {
    for (u64 s = 0; s < mapped.size() && found[q] == lsh::no_match; ++s) {
      auto const* const all = reinterpret_cast<float const*>(mapped[s]->data());
      for (u64 k = 0; k < images && found[q] == lsh::no_match; ++k) {
        const float squared = squared_distance(sets.queries.data() + q * image_numbers, all + k * image_numbers, image_numbers);
        if (squared <= image_sets::distance * image_sets::distance) found[q] = s << 32 | k;
      }
    }
  });
  return found;
}

class image_bench {
 public:
  explicit image_bench(image_search_options const& options)
      : options_(options), sets_(options), threads_(graph::worker_count(options.host_threads)),
        on_(open_executor(options.executor, 0, built_with_kernels)),
        expected_(search_images_on_host(sets_, options.images, threads_)) {}

  /// `theirs` gives seconds; ours are of files.
  measurement measure(std::string const& what, std::string const& baseline, std::function<double()> const& ours,
                      std::function<double()> const& theirs) {
    measurement m;
    double compared = 0;  // as a search without threads would
    for (u64 const found : expected_) {
      const u64 set = found >> 32, image = found & 0xffffffff;
      compared += found == lsh::no_match ? static_cast<double>(options_.sets * options_.images)
                                         : static_cast<double>(set * options_.images + image + 1);
    }
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const double a = ours(), b = theirs();
      if (k == 0) continue;
      m.values.push_back(compared * 1e-6 / a);
      m.baseline_values.push_back(compared * 1e-6 / b);
    }
    m.id = "imagesearch." + what;
    m.unit = "M/s";
    m.baseline = baseline;
    m.verified = true;
    m.params = {{"executor", on_->kind() == executor_kind::cuda ? "cuda" : "cpu"},
                {"queries", std::to_string(options_.queries)},
                {"images", std::to_string(options_.sets * options_.images)}};
    m.machine = describe_host();
    m.machine["device"] = on_->device();
    return m;
  }

  double from_files(u64 line) {
    lsh::within_options how;
    how.executor = options_.executor;
    how.line_bytes = line;
    how.cache_bytes = std::max(u64{256} << 20, 2 * options_.sets * options_.images * image_bytes);
    const lsh::within_result result =
        lsh::find_within(sets_.path, sets_.names, image_bytes, image_numbers, sets_.queries, image_sets::distance, how);
    check(result.found);
    return result.seconds;
  }

  /// With all lines in the cache: the second of two searches through one folder.
  double warm_from_files() {
    if (warm_ == nullptr) warm_ = std::make_unique<warm_files>(*on_, sets_, options_);
    return run_over([&](u32 s) { return lsh::file_range{warm_->files.view(), warm_->descriptors[s]}; });
  }

  double from_memory() {
    if (resident_.empty()) {
      for (auto const& name : sets_.names) {
        const mapped_file mapped(sets_.path + "/" + name);
        resident_.emplace_back(on_->memory(), lsh::local, mapped.bytes());
        resident_.back().write({mapped.data(), mapped.bytes()});
      }
    }
    return run_over([&](u32 s) { return lsh::memory_range{resident_[s].data()}; });
  }

  double on_host() {
    const u64 begun = now_ns();
    const std::vector<u64> found = search_images_on_host(sets_, options_.images, threads_);
    const double seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    check(found);
    return seconds;
  }
  u32 threads() const { return threads_; }

 private:
  struct warm_files {
    warm_files(executor& on, image_sets const& sets, image_search_options const& options)
        : files(on, sets.path, options_of(options)) {
      for (auto const& name : sets.names) descriptors.push_back(lsh::open_in_kernel(on, files, sets.path, name));
    }
    static folder_options options_of(image_search_options const& options) {
      folder_options how;
      how.cache.line_bytes = 65536;
      how.cache.bytes = std::max(u64{256} << 20, 2 * options.sets * options.images * image_bytes);
      return how;
    }
    folder files;
    std::vector<file_descriptor> descriptors;
  };

  template <class MakeRange>
  double run_over(MakeRange const& range_of) {
    using body = lsh::match_records<decltype(range_of(0))>;
    const u32 count = static_cast<u32>(expected_.size());
    buffer<float> asked(on_->memory(), lsh::local, round_up(u64{count}, u64{body::tile}) * image_numbers);
    buffer<u64> found(on_->memory(), lsh::local, count);
    buffer<u32> failed(on_->memory(), lsh::local, 1);
    asked.write(sets_.queries);
    std::vector<u64> all(count, lsh::no_match);
    found.write(all);
    const u64 begun = now_ns();
    for (u32 s = 0; s < options_.sets; ++s) {
      const body search{range_of(s),
                        options_.images,
                        image_bytes,
                        s,
                        asked.data(),
                        image_numbers,
                        image_numbers,
                        count,
                        image_sets::distance * image_sets::distance,
                        found.data(),
                        failed.data()};
      lsh::run(*on_, search.items(), search);
    }
    found.read(all);
    const double seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    check(all);
    return seconds;
  }

  void check(std::vector<u64> const& found) const {
    if (found != expected_) throw error(error_kind::world, "measure imagesearch: a search found other images than the host's");
  }

  image_search_options const& options_;
  image_sets sets_;
  u32 threads_;
  std::unique_ptr<executor> on_;
  std::vector<u64> expected_;
  std::unique_ptr<warm_files> warm_;
  std::vector<buffer<char>> resident_;
};

}  // namespace

std::vector<measurement> run_image_search_benchmark(image_search_options const& options) {
  const auto refuse = [](std::string const& problem) { throw_bad_input("measure", "imagesearch", problem); };
  if (options.repeats == 0) refuse("0 repeats: ask for 1 or more");
  if (options.sets == 0 || options.sets > 1000) refuse(std::to_string(options.sets) + " sets: choose 1 to 1000");
  if (options.images == 0 || options.images > 10'000'000)
    refuse(std::to_string(options.images) + " images: choose 1 to 10000000");
  if (options.queries == 0 || options.queries > 100'000)
    refuse(std::to_string(options.queries) + " queries: choose 1 to 100000");
  image_bench bench(options);
  measurement_list found(options.found);
  const auto report = [&](std::string const& what, u64 done) {
    if (options.progress) options.progress(what, done, 3);
  };
  report("warm", 0);
  found.add(bench.measure(
      "warm", "all sets in the executor's memory", [&] { return bench.warm_from_files(); },
      [&] { return bench.from_memory(); }));
  report("page", 1);
  found.add(bench.measure(
      "page", "lines of 4 KiB, both cold", [&] { return bench.from_files(65536); }, [&] { return bench.from_files(4096); }));
  report("cpu", 2);
  found.add(bench.measure(
      "cpu", std::to_string(bench.threads()) + " host threads, vectorized, over mapped files",
      [&] { return bench.from_files(65536); }, [&] { return bench.on_host(); }));
  return found.take();
}

}  // namespace penstock::bench
