// Topics of applications over files.
#include "libs/bench/collage.hpp"
#include "libs/bench/option_values.hpp"
#include "libs/bench/topic_list.hpp"

namespace penstock::bench {
namespace {

using namespace option_values;

std::vector<measurement> run_collage(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  collage_options options;
  options.executor = text(given, "executor", options.executor);
  options.dataset = text(given, "dataset", "");
  options.folder = text(given, "folder", "");
  options.records = number(given, "records", 0);
  options.widths = numbers(given, "width", options.widths);
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.host_threads = small(given, "host-threads", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_collage_benchmark(options);
}

std::vector<measurement> run_image_search(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  image_search_options options;
  options.executor = text(given, "executor", options.executor);
  options.folder = text(given, "folder", "");
  options.sets = small(given, "sets", options.sets);
  options.images = number(given, "images", options.images);
  options.queries = small(given, "queries", options.queries);
  options.host_threads = small(given, "host-threads", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_image_search_benchmark(options);
}

}  // namespace

topic collage_topic() {
  return {"collage",
          "nearest records of a picture's blocks, read from files by the threads that compare them",
          {{"executor", "auto, cpu or cuda"},
           {"dataset", "a folder of penstock collage-dataset; without it a synthetic one is made"},
           {"folder", "where that is made, and removed again"},
           {"records", "of a synthetic one"},
           {"width", "of the pictures, one or more with commas; they are three quarters as high"},
           {"cache-mib", "of the cache, which is empty at the start of each run"},
           {"host-threads", "of the baselines; 0: one per core"},
           {"patterns", "of cpu, level, cpu_gpu, hbm (CUDA) and large"},
           {"repeats", "of each measurement"}},
          run_collage};
}

topic image_search_topic() {
  return {"imagesearch",
          "the first of several sets of images that lies within a distance of each query, by brute force",
          {{"executor", "auto, cpu or cuda"},
           {"folder", "where the sets are made, and removed again"},
           {"sets", "of images"},
           {"images", "of each set, 4 KiB each"},
           {"queries", "that are searched for"},
           {"host-threads", "of the baseline; 0: one per core"},
           {"repeats", "of each measurement"}},
          run_image_search};
}

}  // namespace penstock::bench
