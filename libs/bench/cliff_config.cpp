#include "libs/bench/cliff_config.hpp"

#include "penstock/core/bits.hpp"

#include <algorithm>
#include <iterator>
#include <list>
#include <random>
#include <unordered_map>
#include <utility>

namespace penstock::bench {
namespace {

constexpr char const* pattern_names[] = {"linear", "strided", "in order", "permuted", "uniform",
                                         "zipf",   "hot",     "lists",    "resident"};
constexpr char const* access_names[] = {"a[i]", "array_ref", "read_async", "read_span", "pin", "fetch_add"};
constexpr char const* source_names[] = {"file", "memory", "copied"};
constexpr u64 mean_list = 40;
/// Bytes that a configuration moves at most, or so: large lines are fewer.
constexpr u64 most_bytes = 1ull << 29;

u64 mix(u64 x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

u64 line_of(cliff_config const& c, u64 j) {
  const u64 lines = c.lines(), h = mix(j * 2 + c.seed * 0x9e3779b97f4a7c15ull);
  switch (c.pattern) {
    case cliff_pattern::in_order: return j % lines;
    case cliff_pattern::permuted: return j * 2654435761ull % lines;  // prime to a power of two
    case cliff_pattern::zipf: return mix(h) % std::max<u64>(1, lines >> (h % 16));
    case cliff_pattern::hot: return h % 10 != 0 ? mix(h) % 16 * (lines / 16) : mix(h) % lines;
    case cliff_pattern::resident: return mix(h % c.resident_lines() + c.seed) % lines;
    default: return mix(h) % lines;
  }
}

/// About what an access moves where little stays in the cache.
u64 bytes_of_an_access(cliff_config const& c) {
  if (c.takes_lines()) return c.line_bytes;
  switch (c.pattern) {
    case cliff_pattern::linear: return 8;
    case cliff_pattern::strided: return std::min<u64>(37 * 8, c.line_bytes);
    case cliff_pattern::lists: return 8 + c.line_bytes / mean_list;
    case cliff_pattern::zipf:
    case cliff_pattern::hot:
    case cliff_pattern::resident: return c.line_bytes / 4;
    default: return c.line_bytes;
  }
}

/// Elements of lists, by the groups of lanes that read them together.
std::vector<u32> lists_of(cliff_config const& c) {
  const u64 elements = c.data_bytes / sizeof(u64), width = std::max<u64>(c.lanes, 1);
  std::vector<u32> all(c.accesses());
  for (u64 group = 0; group * width < c.streams; ++group) {
    std::mt19937_64 draw(c.seed * 1000003 + group);
    u64 at = 0, left = 0;
    for (u64 k = 0; k < c.per_stream; ++k) {
      for (u64 lane = 0; lane < width && group * width + lane < c.streams; ++lane) {
        if (left == 0) {
          at = draw() % elements;
          left = 1 + draw() % (2 * mean_list);
        }
        all[k * c.streams + group * width + lane] = static_cast<u32>(at);
        at = (at + 1) % elements;
        --left;
      }
    }
  }
  return all;
}

template <std::size_t N>
u64 one_of(std::mt19937_64& draw, u64 const (&all)[N]) {
  return all[draw() % N];
}

}  // namespace

cliff_config draw_config(u64 seed, u64 data_bytes, u64 most_streams, u32 lanes) {
  std::mt19937_64 draw(seed);
  cliff_config c;
  c.seed = seed;
  c.data_bytes = data_bytes;
  c.lanes = lanes;
  c.pattern = static_cast<cliff_pattern>(draw() % (std::size(pattern_names) - 1));
  c.access = static_cast<cliff_access>(draw() % std::size(access_names));
  c.source = static_cast<cliff_source>(draw() % std::size(source_names));
  if (c.access == cliff_access::add && c.source == cliff_source::copied) c.source = cliff_source::file;
  c.directory = draw() % 2 == 0 ? directory_kind::direct : directory_kind::set_associative;
  c.line_bytes = one_of(draw, {512, 4096, 16384, 65536});
  const u64 parts = one_of(draw, {128, 32, 16, 8, 4, 2, 1});
  c.cache_bytes = std::max(2 * data_bytes / parts, 64 * c.line_bytes);  // a cache has room for what groups pin
  const u64 streams = one_of(draw, {u64{32}, u64{1024}, most_streams / 8, most_streams});
  // Drawn last: the other seeds are what they were without it.
  if (draw() % std::size(pattern_names) == 0) c.pattern = cliff_pattern::resident;
  const u64 all = std::min(most_streams * (lanes == 1 ? 1024 : 16), most_bytes / bytes_of_an_access(c));
  c.streams = std::min({streams, most_streams, all});
  c.per_stream = std::max<u64>(1, all / c.streams);
  return c;
}

std::map<std::string, std::string> describe(cliff_config const& c) {
  return {{"pattern", pattern_names[static_cast<u32>(c.pattern)]},
          {"access", access_names[static_cast<u32>(c.access)]},
          {"source", source_names[static_cast<u32>(c.source)]},
          {"directory", c.directory == directory_kind::direct ? "direct" : "set"},
          {"line", std::to_string(c.line_bytes)},
          {"mib", std::to_string(c.data_bytes >> 20)},
          {"cache_kib", std::to_string(c.cache_bytes >> 10)},
          {"streams", std::to_string(c.streams)},
          {"each", std::to_string(c.per_stream)},
          {"seed", std::to_string(c.seed)}};
}

std::vector<u32> elements_of(cliff_config const& c) {
  if (c.pattern == cliff_pattern::lists && !c.takes_lines()) return lists_of(c);
  const u64 elements = c.data_bytes / sizeof(u64), in_line = c.line_elements();
  std::vector<u32> all(c.accesses());
  for (u64 s = 0; s < c.streams; ++s) {
    for (u64 k = 0; k < c.per_stream; ++k) {
      // A CPU's threads take items that follow each other, a GPU's go side by side.
      const u64 j = c.lanes == 1 ? s * c.per_stream + k : k * c.streams + s;
      u64 element = line_of(c, j) * in_line + (c.takes_lines() ? 0 : mix(j) % in_line);
      if (c.pattern == cliff_pattern::linear) element = j * (c.takes_lines() ? in_line : 1) % elements;
      if (c.pattern == cliff_pattern::strided) element = j * (c.takes_lines() ? 2 * in_line : 37) % elements;
      all[k * c.streams + s] = static_cast<u32>(element);
    }
  }
  return all;
}

lru_counts simulate_lru(cliff_config const& c, std::vector<u32> const& elements, u64 frames) {
  struct line {
    u64 number;
    bool changed;
  };
  std::list<line> recent;
  std::unordered_map<u64, std::list<line>::iterator> place;
  lru_counts counts;
  std::vector<u64> stalled(c.groups(), ~0ull);  // when last
  const auto access = [&](u64 step, u64 stream) {
    const u64 number = elements[step * c.streams + stream] / c.line_elements();
    if (const auto at = place.find(number); at != place.end()) {
      recent.splice(recent.begin(), recent, at->second);
      return;
    }
    ++counts.fills;
    const u64 when = step / (c.access == cliff_access::async ? asked_together : 1);
    counts.stalls += std::exchange(stalled[stream / c.width()], when) != when ? 1 : 0;
    if (recent.size() == frames) {
      counts.write_backs += recent.back().changed ? 1 : 0;
      place.erase(recent.back().number);
      recent.pop_back();
    }
    recent.push_front({number, c.access == cliff_access::add});
    place[number] = recent.begin();
  };
  const u64 outer = c.lanes == 1 ? c.streams : c.per_stream, inner = c.lanes == 1 ? c.per_stream : c.streams;
  for (u64 a = 0; a < outer; ++a) {
    for (u64 b = 0; b < inner; ++b) c.lanes == 1 ? access(b, a) : access(a, b);
  }
  for (line const& left : recent) counts.write_backs += left.changed ? 1 : 0;
  return counts;
}

}  // namespace penstock::bench
