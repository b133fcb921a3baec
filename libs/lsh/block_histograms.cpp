#include "libs/lsh/block_histograms.hpp"

#include "libs/graph/file.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/lsh/lsh_index.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

namespace penstock::lsh {
namespace {

/// Numbers that follow from a seed, for one record or one block.
class number_stream {
 public:
  number_stream(u64 seed, u64 k) : state_(mix_word(mix_word(seed) ^ k)) {}

  u64 word() { return mix_word(state_++); }
  double uniform() { return (static_cast<double>(word() >> 11) + 0.5) * 0x1p-53; }
  /// About normally distributed: a sum of four uniform numbers.
  double normal() {
    const u64 w = word();
    const double sum = static_cast<double>(w & 0xffff) + static_cast<double>(w >> 16 & 0xffff) +
                       static_cast<double>(w >> 32 & 0xffff) + static_cast<double>(w >> 48);
    return (sum / 65536 - 2) * std::numbers::sqrt3;
  }

 private:
  u64 state_;
};

struct material {
  std::array<double, channels> mean;
  double spread;
};

constexpr u32 materials = 4096;
constexpr double skew = 0.7;  // of Zipf's law

/// The materials do not depend on the seed, so that a picture of one seed has neighbours in a set of another.
material material_of(u32 number) {
  number_stream draw(0x6d6174, number);
  material m{};
  const double light = draw.uniform() * 255;
  for (double& mean : m.mean) mean = std::clamp(light + 35 * draw.normal(), 0.0, 255.0);
  m.spread = std::exp2(1 + 3.5 * draw.uniform());
  return m;
}
u32 frequent_material(number_stream& draw) {  // the inverse of Zipf's distribution function, of a continuous one
  const double u = draw.uniform();
  return std::min(materials - 1, static_cast<u32>(materials * std::pow(u, 1 / (1 - skew))));
}
/// One block's own.
material look_of(u32 number, number_stream& draw) {
  material m = material_of(number);
  for (double& mean : m.mean) mean = std::clamp(mean + 3 * draw.normal(), 0.0, 255.0);
  m.spread *= std::exp2(0.25 * draw.normal());
  return m;
}

/// The counts that block_pixels pixels of a material have, with the noise of their number.
void draw_histogram(material const& m, number_stream& draw, float* to) {
  std::fill(to, to + histogram_bins, 0.0f);
  for (u32 c = 0; c < channels; ++c) {
    float* const bins = to + c * channel_bins;
    const int first = std::max(0, static_cast<int>(m.mean[c] - 3.5 * m.spread)),
              last = std::min(255, static_cast<int>(m.mean[c] + 3.5 * m.spread) + 1);
    int left = static_cast<int>(block_pixels);
    for (int b = first; b <= last && left > 0; ++b) {
      const double at = (b - m.mean[c]) / m.spread;
      const double expected = block_pixels / (m.spread * std::sqrt(2 * std::numbers::pi)) * std::exp(-at * at / 2);
      const int count = std::clamp(static_cast<int>(std::lround(expected + std::sqrt(expected) * draw.normal())), 0, left);
      bins[b] = static_cast<float>(count);
      left -= count;
    }
    const int middle = std::clamp(static_cast<int>(m.mean[c]), 0, 255);
    bins[middle] += static_cast<float>(left);
  }
}

}  // namespace

std::vector<float> histograms_of(std::string const& executor, u32 threads, std::span<u8 const> pixels, u64 rows, u64 columns) {
  const u64 across = columns / block_side, blocks = rows / block_side * across;
  if (blocks == 0) {
    throw_bad_input("count colours", std::to_string(columns) + " x " + std::to_string(rows) + " pixels",
                    "give a picture of at least 32 x 32");
  }
  const auto on = open_executor(executor, threads, has_kernels);
  constexpr u64 most_bytes = u64{256} << 20;  // of histograms, at once
  const u64 rows_at_once = std::clamp<u64>(most_bytes / (across * histogram_bins * sizeof(float)), 1, rows / block_side);
  buffer<u8> there(on->memory(), memory_kind::local, rows_at_once * block_side * columns * channels);
  buffer<float> counted(on->memory(), memory_kind::local, rows_at_once * across * histogram_bins);
  std::vector<float> all(blocks * histogram_bins);
  for (u64 first = 0; first < rows / block_side; first += rows_at_once) {
    const u64 count = std::min(rows_at_once, rows / block_side - first), bytes = count * block_side * columns * channels;
    on->memory().write(there.data(), pixels.data() + first * block_side * columns * channels, bytes);
    run(*on, count * across, count_colours{there.data(), columns * channels, across, counted.data()});
    on->memory().read(all.data() + first * across * histogram_bins, counted.data(),
                      count * across * histogram_bins * sizeof(float));
  }
  return all;
}

void write_synthetic_histograms(std::string const& path, u64 records, u64 seed, u32 threads,
                                std::function<void(u64, u64)> const& progress) {
  if (records == 0 || records > max_records) {
    throw_bad_input("write", path, std::to_string(records) + " records: choose 1 to 4294967295");
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  graph::file out = graph::file::create(path);
  constexpr u64 at_once = 4096, stride = histogram_record_bytes / sizeof(float);
  graph::progress_meter meter([&](u64 done, u64) {
    if (progress) progress(records * done / 1000, records);
  });
  const unsigned workers = graph::worker_count(threads);
  std::vector<std::vector<float>> rooms(workers, std::vector<float>(at_once * stride));
  graph::parallel_for_workers(ceil_div(records, at_once), workers, meter, [&](u64 part, unsigned worker) {
    const u64 first = part * at_once, count = std::min(at_once, records - first);
    for (u64 k = 0; k < count; ++k) {
      number_stream draw(seed, first + k);
      draw_histogram(look_of(frequent_material(draw), draw), draw, rooms[worker].data() + k * stride);
    }
    out.write(first * histogram_record_bytes, std::as_bytes(std::span(rooms[worker].data(), count * stride)));
  });
}

std::vector<u8> synthetic_picture(u64 rows, u64 columns, u64 seed) {
  constexpr u64 patch = 4 * block_side;  // of one material
  std::vector<u8> pixels(rows * columns * channels);
  const u64 across = ceil_div(columns, block_side), patches = ceil_div(columns, patch);
  graph::progress_meter quiet;
  graph::parallel_for(ceil_div(rows, block_side), graph::worker_count(0), quiet, [&](u64 block_row) {
    for (u64 block = 0; block < across; ++block) {
      number_stream of_patch(seed ^ 0x70617463, block_row * block_side / patch * patches + block * block_side / patch);
      number_stream draw(seed ^ 0x626c6f63, block_row * across + block);
      const material m = look_of(frequent_material(of_patch), draw);
      for (u64 y = block_row * block_side; y < std::min(rows, (block_row + 1) * block_side); ++y) {
        for (u64 x = block * block_side; x < std::min(columns, (block + 1) * block_side); ++x) {
          for (u32 c = 0; c < channels; ++c) {
            pixels[(y * columns + x) * channels + c] =
                static_cast<u8>(std::clamp(std::lround(m.mean[c] + m.spread * draw.normal()), 0l, 255l));
          }
        }
      }
    }
  });
  return pixels;
}

}  // namespace penstock::lsh
