// Colour histograms of the blocks of a picture: 256 counts for red, then for green, then for blue (Shahar and Silberstein,
// SYSTOR 2016, section 2.4).
#pragma once

#include "libs/lsh/record_sources.hpp"
#include "penstock/executor/launch.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace penstock::lsh {

inline constexpr u32 block_side = 32, block_pixels = block_side * block_side;  // pixels
inline constexpr u32 channels = 3, channel_bins = 256, histogram_bins = channels * channel_bins;
inline constexpr u64 histogram_record_bytes = 4096;
inline constexpr u64 block_bytes = u64{block_pixels} * channels;

/// An item is a block: row by row, those that are whole.
struct count_colours {
  u8 const* pixels;  ///< [rows][row_bytes]: red, green, blue
  u64 row_bytes;
  u64 blocks_per_row;
  float* histograms;  ///< [items][histogram_bins]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      auto* const counts = reinterpret_cast<u32*>(histograms + k * histogram_bins);
      for (u32 b = index_in(g); b < histogram_bins; b += size(g)) counts[b] = 0;
      converge_after_call(g);
      u8 const* const corner =
          pixels + k / blocks_per_row * block_side * row_bytes + k % blocks_per_row * block_side * channels;
      for (u32 i = index_in(g); i < block_side * block_side * channels; i += size(g)) {
        const u32 row = i / (block_side * channels), byte = i % (block_side * channels);
        const u32 bin = byte % channels * channel_bins + corner[row * row_bytes + byte];
        device_ref<u32>(counts[bin]).fetch_add(1, relaxed);
      }
      converge_after_call(g);
      for (u32 b = index_in(g); b < histogram_bins; b += size(g)) {
        histograms[k * histogram_bins + b] = static_cast<float>(counts[b]);
      }
    }
  }
};

/// Of the whole blocks of a picture, row by row: [blocks][histogram_bins].
/// Throws penstock::error, bad_input, for a picture without a whole block.
std::vector<float> histograms_of(std::string const& executor, u32 threads, std::span<u8 const> pixels, u64 rows, u64 columns);

/// A set of `records` synthetic histograms, as records of histogram_record_bytes each: of pictures of `materials`, which differ
/// in colour and contrast and of which few are frequent. `progress` gets done and total records. Throws penstock::error.
void write_synthetic_histograms(std::string const& path, u64 records, u64 seed, u32 threads,
                                std::function<void(u64, u64)> const& progress);
/// A picture of such materials in patches, [rows][columns][3].
std::vector<u8> synthetic_picture(u64 rows, u64 columns, u64 seed);

}  // namespace penstock::lsh
