// Generated graphs: Kronecker (R-MAT with Graph500's parameters), uniform, and with the degrees of a social network. Each block
// of 2^18 edges has a seed of its own, so the edges do not depend on the number of threads or on the order in which blocks are
// made; nothing is stored.
#pragma once

#include "libs/graph/edge_source.hpp"

#include <string>

namespace penstock::graph {

enum class generator_kind { kron, urand, social };

struct generator_spec {
  generator_kind kind = generator_kind::kron;
  u32 scale = 0;    ///< 2^scale vertices, 1 to 40
  u64 degree = 16;  ///< edges made per vertex, before both directions are stored and duplicates dropped; 1 to 4096
  u64 seed = 1;
  bool weighted = false;  ///< int32 weights, uniform in 1..255; the edges are the same with and without

  friend bool operator==(generator_spec const&, generator_spec const&) = default;
};

/// "kron:SCALE[:DEGREE]", and the same with urand or social, whose degree is 27 unless told. Errors: bad_input.
generator_spec parse_generator(std::string const& text);
std::string to_string(generator_spec const& spec);

/// A bijection of [0, 2^scale) that scatters the ids: R-MAT gives small ids the high degrees. Made of steps that can each be
/// undone on `scale` bits (odd multiplication, xor with a shift to the right, addition), so it needs no table.
class id_permutation {
 public:
  id_permutation(u32 scale, u64 seed);
  u64 operator()(u64 id) const {
    for (auto const& r : rounds_) {
      id = (id * r.multiplier + r.addend) & mask_;
      id ^= id >> shift_;
    }
    return id;
  }

 private:
  struct round {
    u64 multiplier;  ///< odd
    u64 addend;
  };
  round rounds_[4];
  u64 mask_;
  u32 shift_;
};

class generator final : public edge_source {
 public:
  static constexpr u64 block_edges = u64{1} << 18;

  explicit generator(generator_spec spec);

  u64 vertices() const override { return u64{1} << spec_.scale; }
  u64 edges() const { return spec_.degree << spec_.scale; }  ///< that are made, not that remain
  weight_type weights() const override { return spec_.weighted ? weight_type::int32 : weight_type::none; }
  u64 blocks() const override { return (edges() + block_edges - 1) / block_edges; }
  void produce(u64 block, edge_sink const& sink) const override;

 private:
  generator_spec spec_;
  id_permutation permute_;
};

}  // namespace penstock::graph
