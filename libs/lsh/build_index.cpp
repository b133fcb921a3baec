#include "libs/lsh/build_index.hpp"

#include "libs/graph/file.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/lsh/cell_width.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>

#include <unistd.h>

namespace penstock::lsh {
namespace {

constexpr u64 hashed_at_once = 65536, samples_at_most = 32768;

[[noreturn]] void refuse_build(std::string const& folder, std::string const& problem) {
  throw_bad_input("build index", folder, problem);
}

index_header shape_of(std::string const& folder, build_options const& options) {
  if (options.dimensions == 0 || options.dimensions > max_dimensions) {
    refuse_build(folder, std::to_string(options.dimensions) + " dimensions: give 1 to " + std::to_string(max_dimensions));
  }
  if (options.tables == 0 || options.tables > max_tables) {
    refuse_build(folder, std::to_string(options.tables) + " tables: choose 1 to " + std::to_string(max_tables));
  }
  if (options.projections_per_table == 0 || options.projections_per_table > max_projections_per_table) {
    refuse_build(folder, std::to_string(options.projections_per_table) + " projections: choose 1 to " +
                             std::to_string(max_projections_per_table));
  }
  if (options.width != 0 && !(options.width >= min_width && options.width <= max_width)) {
    refuse_build(folder, "the width: give 0, or a number from 1.2e-38 to 8.5e+37");
  }
  if (!(options.candidates > 0)) refuse_build(folder, "candidates: give a number above 0");
  index_header h;
  h.dimensions = options.dimensions;
  h.tables = options.tables;
  h.projections_per_table = options.projections_per_table;
  h.seed = options.seed;
  h.record_bytes =
      options.record_bytes != 0 ? options.record_bytes : round_up(u64{options.dimensions} * sizeof(float), u64{16});
  if (h.record_bytes % 16 != 0 || h.record_bytes < u64{h.dimensions} * sizeof(float)) {
    refuse_build(folder, "records of " + std::to_string(h.record_bytes) + " bytes: give a multiple of 16 of at least " +
                             std::to_string(u64{h.dimensions} * sizeof(float)));
  }
  std::error_code failed;
  const u64 bytes = std::filesystem::file_size(folder + "/" + records_name, failed);
  if (failed) throw_os_error("build index", folder + "/" + records_name, failed.value(), "name a folder with records");
  h.records = bytes / h.record_bytes;
  if (h.records == 0 || bytes % h.record_bytes != 0) {
    refuse_build(folder, std::string(records_name) + " has " + std::to_string(bytes) + " bytes: they are no records of " +
                             std::to_string(h.record_bytes));
  }
  if (h.records > max_records) refuse_build(folder, std::to_string(h.records) + " records: an index has up to 4294967295");
  // A few records to a bucket: tags separate their keys, and the offsets stay small enough for local memory.
  h.bucket_bits = std::clamp(static_cast<u32>(std::bit_width(h.records)), 7u, 23u) - 3;
  return h;
}

/// A number between 0 and 1, of a counter.
double uniform(u64 seed, u64 k) { return (static_cast<double>(mix_word(mix_word(seed) + k) >> 11) + 0.5) * 0x1p-53; }

/// Normally distributed, in steps of 1/64, in which sums of products with whole numbers are exact.
std::vector<float> draw_projections(index_header const& h) {
  std::vector<float> drawn(u64{h.dimensions} * h.projections());
  for (u64 k = 0; k < drawn.size(); ++k) {
    const double radius = std::sqrt(-2 * std::log(uniform(h.seed, 2 * k)));
    const double normal = radius * std::cos(2 * std::numbers::pi * uniform(h.seed, 2 * k + 1));
    drawn[k] = static_cast<float>(std::round(normal * 64) / 64);
  }
  return drawn;
}
std::vector<float> draw_unit_shifts(index_header const& h) {
  std::vector<float> drawn(h.projections());
  for (u64 k = 0; k < drawn.size(); ++k) drawn[k] = static_cast<float>(uniform(~h.seed, k));
  return drawn;
}

folder_options reading_options(executor const& on) {
  folder_options how;
  how.cache.bytes = on.kind() == executor_kind::cuda ? u64{1} << 30 : u64{64} << 20;
  how.cache.line_bytes = 65536;
  how.max_files = 16;
  return how;
}

class index_builder {
 public:
  index_builder(std::string const& root, build_options const& options)
      : root_(root), options_(options), header_(shape_of(root, options)), threads_(graph::worker_count(options.threads)),
        on_(open_executor(options.executor, options.threads, has_kernels)), folder_(*on_, root, reading_options(*on_)),
        failed_(on_->memory(), local, 1), projections_(draw_projections(header_)), unit_shifts_(draw_unit_shifts(header_)) {
    records_ = open_in_kernel(*on_, folder_, root, records_name);
    projections_there_ = buffer<float>(on_->memory(), local, projections_.size());
    shifts_there_ = buffer<float>(on_->memory(), local, unit_shifts_.size());
    projections_there_.write(projections_);
  }

  index_header build() {
    header_.width = options_.width != 0 ? options_.width : choose_width(sample(), header_, options_.candidates, threads_);
    std::vector<float> shifts(unit_shifts_);
    for (float& shift : shifts) shift *= header_.width;
    shifts_there_.write(shifts);
    header_.checksum = checksum_of(header_, projections_, shifts);
    const std::string draft = root_ + "/" + index_name + "." + std::to_string(getpid()) + ".part";
    try {
      write(draft, shifts);
      std::filesystem::rename(draft, root_ + "/" + index_name);
    } catch (...) {
      std::error_code ignored;
      std::filesystem::remove(draft, ignored);
      throw;
    }
    return header_;
  }

 private:
  hash_family family() const {
    return {projections_there_.data(),     shifts_there_.data(), header_.dimensions,  header_.tables,
            header_.projections_per_table, header_.bucket_bits,  1.0f / header_.width};
  }

  void report(std::string const& what, u64 done, u64 total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void check() {
    u32 error = 0;
    failed_.read({&error, 1});
    if (error != 0) {
      throw_os_error("read", root_ + "/" + records_name, static_cast<int>(error),
                     "see that it can be read and does not change");
    }
  }

  void project(u64 first, u64 count, buffer<float>& products) {
    run(*on_, count,
        project_vectors<file_records>{
            {folder_.view(), records_, header_.record_bytes}, first, family(), products.data(), failed_.data()});
    check();
  }

  /// Runs of records that are spread evenly.
  sampled_products sample() {
    constexpr u64 runs = 256;
    sampled_products found;
    found.samples = std::min(header_.records, samples_at_most);
    found.unit_shifts = unit_shifts_;
    found.products.resize(found.samples * header_.projections());
    const u64 of_run = ceil_div(found.samples, runs);
    buffer<float> products(on_->memory(), local, of_run * header_.projections());
    for (u64 done = 0; done < found.samples; done += of_run) {
      report("sampling records", done, found.samples);
      const u64 count = std::min(of_run, found.samples - done);
      const u64 first = static_cast<u64>(static_cast<double>(done) / static_cast<double>(found.samples) *
                                         static_cast<double>(header_.records - found.samples)) +
                        done;
      project(std::min(first, header_.records - count), count, products);
      on_->memory().read(found.products.data() + done * header_.projections(), products.data(),
                         count * header_.projections() * sizeof(float));
    }
    return found;
  }

  void write(std::string const& path, std::vector<float> const& shifts) {
    graph::file out = graph::file::create(path);
    out.write(0, std::as_bytes(std::span(&header_, 1)));
    out.write(header_.projections_at(), std::as_bytes(std::span(projections_)));
    out.write(header_.shifts_at(), std::as_bytes(std::span(shifts)));
    const u64 of_table = header_.records * sizeof(u64);
    const u64 workers = std::min<u64>(threads_, header_.tables);
    const u64 rest = options_.memory_bytes > workers * of_table ? options_.memory_bytes - workers * of_table : 0;
    const u32 at_once = static_cast<u32>(std::clamp<u64>(rest / of_table, 1, header_.tables));
    for (u32 first = 0; first < header_.tables; first += at_once) {
      const u32 count = std::min(at_once, header_.tables - first);
      const std::vector<u64> keys = hash_all(first, count);
      graph::progress_meter meter(
          [&](u64 done, u64) { report("sorting tables", first + done * count / 1000, header_.tables); });
      graph::parallel_for(count, static_cast<unsigned>(workers), meter, [&](u64 t) {
        write_table(out, first + static_cast<u32>(t), {keys.data() + t * header_.records, header_.records});
      });
    }
  }

  /// Keys of tables, [tables][records].
  std::vector<u64> hash_all(u32 first_table, u32 tables) {
    std::vector<u64> keys(tables * header_.records), some;
    const u64 at_once = std::min(hashed_at_once, header_.records);
    buffer<float> products(on_->memory(), local, at_once * header_.projections());
    buffer<u64> keys_there(on_->memory(), local, at_once * header_.tables);
    for (u64 first = 0; first < header_.records; first += at_once) {
      report("hashing records", first + first_table * header_.records, header_.tables * header_.records);
      const u64 count = std::min(at_once, header_.records - first);
      project(first, count, products);
      run(*on_, count, find_keys{products.data(), family(), keys_there.data()});
      some.resize(count * header_.tables);
      on_->memory().read(some.data(), keys_there.data(), some.size() * sizeof(u64));
      for (u32 t = 0; t < tables; ++t) {
        for (u64 k = 0; k < count; ++k) keys[t * header_.records + first + k] = some[k * header_.tables + first_table + t];
      }
    }
    return keys;
  }

  void write_table(graph::file const& out, u32 t, std::span<u64 const> keys) const {
    std::vector<u32> offsets(header_.buckets() + 1);
    for (const u64 key : keys) ++offsets[bucket_of(key, header_.bucket_bits) + 1];
    for (u64 b = 0; b < header_.buckets(); ++b) offsets[b + 1] += offsets[b];
    std::vector<index_entry> entries(keys.size());
    std::vector<u32> next(offsets);
    for (u64 k = 0; k < keys.size(); ++k) {
      entries[next[bucket_of(keys[k], header_.bucket_bits)]++] = {static_cast<u32>(k), tag_of(keys[k])};
    }
    out.write(header_.offsets_at() + t * (header_.buckets() + 1) * sizeof(u32), std::as_bytes(std::span(offsets)));
    out.write(header_.entries_at() + t * header_.records * sizeof(index_entry), std::as_bytes(std::span(entries)));
  }

  std::string root_;
  build_options const& options_;
  index_header header_;
  unsigned threads_;
  std::unique_ptr<executor> on_;
  folder folder_;
  buffer<u32> failed_;
  std::vector<float> projections_, unit_shifts_;
  file_descriptor records_;
  buffer<float> projections_there_, shifts_there_;
};

}  // namespace

index_header build_index(std::string const& folder, build_options const& options) {
  return index_builder(folder, options).build();
}

}  // namespace penstock::lsh
