#include "libs/graph/generator.hpp"

#include "libs/graph/social_ranks.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>

namespace penstock::graph {
namespace {

constexpr u64 batch_edges = 2048;

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators": spreads seeds that differ in few bits.
u64 split_mix(u64& state) {
  u64 z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Blackman, Vigna, "Scrambled linear pseudorandom number generators": xoshiro256++.
class random_stream {
 public:
  random_stream(u64 seed, u64 block, u64 purpose) {
    u64 state = seed;
    state = split_mix(state) ^ block;
    state = split_mix(state) ^ purpose;
    for (u64& word : state_) word = split_mix(state);
  }
  u64 next() {
    u64 const result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    u64 const t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

 private:
  std::array<u64, 4> state_;
};

enum purpose : u64 { for_edges = 1, for_weights = 2, for_permutation = 3 };

constexpr u32 threshold(double probability) { return static_cast<u32>(probability * 4294967296.0); }
constexpr u32 below_b = threshold(0.57);         // quadrant A ends here
constexpr u32 below_c = threshold(0.57 + 0.19);  // B
constexpr u32 below_d = threshold(0.57 + 0.38);  // C

/// One level of R-MAT: which quadrant `draw` falls in, as one more bit of both ends.
void descend(u32 draw, u64& from, u64& to) {
  u64 const b = draw >= below_b, c = draw >= below_c, d = draw >= below_d;
  from = from << 1 | c;
  to = to << 1 | (b ^ c ^ d);
}

edge kron_edge(random_stream& random, u32 scale) {
  edge e;
  for (u32 level = 0; level < scale; level += 2) {
    u64 const draws = random.next();
    descend(static_cast<u32>(draws), e.from, e.to);
    if (level + 1 < scale) descend(static_cast<u32>(draws >> 32), e.from, e.to);
  }
  return e;
}

edge uniform_edge(random_stream& random, u32 scale) {
  u64 const from = random.next();
  return {from >> (64 - scale), random.next() >> (64 - scale), 0};
}

edge social_edge(random_stream& random, u32 scale) {
  u64 const from = random.next();
  return {social_ranks::of(from, scale), social_ranks::of(random.next(), scale), 0};
}

edge draw_edge(generator_kind kind, random_stream& random, u32 scale) {
  if (kind == generator_kind::kron) return kron_edge(random, scale);
  return kind == generator_kind::urand ? uniform_edge(random, scale) : social_edge(random, scale);
}

struct kind_name {
  std::string_view prefix;
  generator_kind kind;
  u64 degree;  ///< unless told
};

constexpr std::array<kind_name, 3> kinds{
    {{"kron:", generator_kind::kron, 16}, {"urand:", generator_kind::urand, 16}, {"social:", generator_kind::social, 27}}};
constexpr char const* remedy = "write kron:SCALE[:DEGREE], urand:SCALE[:DEGREE] or social:SCALE[:DEGREE]";

u64 parse_number(std::string const& text, std::string_view field, u64 lowest, u64 highest) {
  u64 value = 0;
  auto const [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || value < lowest || value > highest)
    throw_bad_input("generate", text,
                    "'" + std::string(field) + "' is no number from " + std::to_string(lowest) + " to " +
                        std::to_string(highest) + ": " + remedy);
  return value;
}

}  // namespace

generator_spec parse_generator(std::string const& text) {
  auto const* const found =
      std::find_if(kinds.begin(), kinds.end(), [&](kind_name const& k) { return text.starts_with(k.prefix); });
  if (found == kinds.end()) throw_bad_input("generate", text, std::string("no such generator: ") + remedy);
  generator_spec spec{.kind = found->kind, .degree = found->degree};
  std::string_view const rest = std::string_view(text).substr(found->prefix.size());
  std::size_t const colon = std::min(rest.find(':'), rest.size());
  spec.scale = static_cast<u32>(parse_number(text, rest.substr(0, colon), 1, 40));
  if (colon < rest.size()) spec.degree = parse_number(text, rest.substr(colon + 1), 1, 4096);
  return spec;
}

std::string to_string(generator_spec const& spec) {
  auto const* const found = std::find_if(kinds.begin(), kinds.end(), [&](kind_name const& k) { return k.kind == spec.kind; });
  return std::string(found->prefix) + std::to_string(spec.scale) + ":" + std::to_string(spec.degree);
}

id_permutation::id_permutation(u32 scale, u64 seed) : mask_((u64{1} << scale) - 1), shift_(std::max(1u, (scale + 1) / 2)) {
  random_stream random(seed, 0, for_permutation);
  for (round& r : rounds_) {
    r.multiplier = random.next() | 1;
    r.addend = random.next();
  }
}

generator::generator(generator_spec spec) : spec_(spec), permute_(spec.scale, spec.seed) {}

void generator::produce(u64 block, edge_sink const& sink) const {
  random_stream random(spec_.seed, block, for_edges);
  random_stream weights(spec_.seed, block, for_weights);
  u64 left = std::min(block_edges, edges() - block * block_edges);
  std::array<edge, batch_edges> batch;
  while (left != 0) {
    u64 const count = std::min(left, batch_edges);
    for (edge& e : std::span(batch).first(count)) {
      e = draw_edge(spec_.kind, random, spec_.scale);
      e.from = permute_(e.from);
      e.to = permute_(e.to);
      // 255 values of 2^32: the bias of the multiplication is below 10^-7.
      if (spec_.weighted) e.weight = 1 + static_cast<u32>((weights.next() >> 32) * 255 >> 32);
    }
    sink(std::span(batch).first(count));
    left -= count;
  }
}

}  // namespace penstock::graph
