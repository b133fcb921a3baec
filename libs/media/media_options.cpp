#include "libs/media/media_options.hpp"

#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <thread>

namespace penstock::media {
namespace {

constexpr char const* ablate_read_ahead = "read-ahead";

ablations parse_ablate(std::string const& name) {
  ablations without;
  if (name == "cache") without.cache = true;
  if (name == "coalescing") without.coalescing = true;
  if (name == "validation") without.validation = true;
  const bool some = without.cache || without.coalescing || without.validation;
  if (some || name == ablate_read_ahead || name == "nothing") return without;
  throw_bad_input("open", "a graph", "ablate '" + name + "': choose cache, coalescing, validation or read-ahead");
}

}  // namespace

cache_options cache_options_of(media_options const& options, u64 bytes) {
  cache_options cache;
  cache.bytes = bytes;
  cache.line_bytes = options.line_bytes;
  cache.directory = parse_directory(options.directory);
  cache.queues = options.queues;
  cache.queue_depth = options.queue_depth;
  cache.without = parse_ablate(options.ablate);
  if (options.ablate == ablate_read_ahead) cache.read_ahead_bytes = 0;
  return cache;
}

u32 cpu_threads(media_options const& options) {
  if (options.threads != 0 || options.line_bytes == 0) return options.threads;
  if (options.placement != "storage" && options.placement != "host-cached") return options.threads;
  const u64 room = std::max<u64>(1, options.cache_bytes / options.line_bytes / 4);  // weights may take half of it
  return static_cast<u32>(std::min<u64>(std::max(1u, std::thread::hardware_concurrency()), room));
}

}  // namespace penstock::media
