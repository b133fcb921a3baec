#include "libs/lsh/cell_width.hpp"

#include "libs/graph/parallel.hpp"
#include "libs/lsh/lsh_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penstock::lsh {
namespace {

/// A file of records may have others, of which nothing is found.
bool are_finite(float const* products, u32 count) {
  return std::all_of(products, products + count, [](float product) { return std::isfinite(product); });
}

/// One whose inverse is a number, too.
float as_width(double width) { return static_cast<float>(std::clamp(width, double{min_width}, double{max_width})); }

}  // namespace

double expected_candidates(sampled_products const& sample, index_header const& shape, float width, u32 threads) {
  std::vector<float> shifts(sample.unit_shifts);
  for (float& shift : shifts) shift *= width;
  std::vector<double> pairs(shape.tables);
  graph::progress_meter quiet;
  graph::parallel_for(shape.tables, threads, quiet, [&](u64 t) {
    const u32 first = static_cast<u32>(t) * shape.projections_per_table;
    std::vector<u64> keys;
    keys.reserve(sample.samples);
    for (u64 k = 0; k < sample.samples; ++k) {
      float const* const products = sample.products.data() + k * shape.projections() + first;
      if (!are_finite(products, shape.projections_per_table)) continue;
      keys.push_back(find_keys::key_of(products, shifts.data() + first, shape.projections_per_table, 1.0f / width));
    }
    std::sort(keys.begin(), keys.end());
    for (u64 begin = 0, end = 0; begin < keys.size(); begin = end) {
      while (end < keys.size() && keys[end] == keys[begin]) ++end;
      const double same = static_cast<double>(end - begin);
      pairs[t] += same * (same - 1);
    }
  });
  if (sample.samples < 2) return 0;
  const double samples = static_cast<double>(sample.samples);
  return std::accumulate(pairs.begin(), pairs.end(), 0.0) / samples * static_cast<double>(shape.records) / (samples - 1);
}

float choose_width(sampled_products const& sample, index_header const& shape, double candidates, u32 threads) {
  double squares = 0;
  u64 finite = 0;
  for (const float product : sample.products) {
    if (!std::isfinite(product)) continue;
    squares += double{product} * product;
    ++finite;
  }
  const double scale = std::sqrt(squares / static_cast<double>(std::max<u64>(finite, 1)));
  if (!(scale > 0)) return 1;
  double low = std::log2(scale) - 16, high = std::log2(scale) + 4;
  for (u32 step = 0; step < 16; ++step) {
    const double middle = (low + high) / 2;
    const bool enough = expected_candidates(sample, shape, as_width(std::exp2(middle)), threads) >= candidates;
    (enough ? high : low) = middle;
  }
  return as_width(std::exp2(high));
}

}  // namespace penstock::lsh
