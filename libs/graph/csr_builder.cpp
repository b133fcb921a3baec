#include "libs/graph/csr_builder.hpp"

#include "libs/graph/bucket_settler.hpp"
#include "libs/graph/bucket_store.hpp"
#include "libs/graph/file.hpp"
#include "libs/graph/paged_buffer.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::graph {
namespace {

template <class T>
auto bytes_of(std::vector<T> const& v) {
  return std::as_bytes(std::span(v));
}

/// Writes value(edge) of each edge to `position` of the array in the file.
template <class T, class Entry, class F>
void write_items(file const& to, u64 position, std::span<Entry const> edges, F const& value) {
  std::vector<T> items(edges.size());
  std::transform(edges.begin(), edges.end(), items.begin(), [&](Entry const& e) { return static_cast<T>(value(e)); });
  u64 const at = npy_data_offset + position * sizeof(T);
  to.write(at, bytes_of(items));
  to.start_sync(at, items.size() * sizeof(T));
}

class csr_build {
 public:
  csr_build(edge_source const& source, std::string const& folder, build_options const& options, progress_meter& meter)
      : source_(source), folder_(folder), target_(options.target.empty() ? folder : options.target), options_(options),
        meter_(meter), threads_(worker_count(options.threads)), vertices_(source.vertices()), id_bits_(id_bits(vertices_)) {}

  csr_counts run(u64 progress_from) {
    check_memory();
    fit_memory();
    offsets_.resize(vertices_ + 1);
    u64 const counted = progress_from + (1000 - progress_from) / 4;
    meter_.phase(progress_from, counted);
    vertex_bins const bins = count();
    check_space(bins.total());
    source_.weights() == weight_type::none ? write_edges<packed_edge>(bins, counted)
                                           : write_edges<packed_weighted_edge>(bins, counted);
    write_offsets();
    meter_.phase(990, 1000);
    meter_.report(1, 1);
    return {vertices_, written_, balance_ == 0};
  }

 private:
  /// What a thread collects, sorts into, reads and writes from, with room to spare.
  static constexpr u64 worker_bytes = u64{8} << 20;
  static constexpr u64 slack_bytes = u64{4} << 20;  ///< rounding, and the tables of bins and buckets

  bool wide_ids() const { return options_.wide_ids || vertices_ >= u64{1} << 31; }

  void check_memory() const {
    u64 const have = static_cast<u64>(::sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(::sysconf(_SC_PAGESIZE));
    u64 const held = source_.held_bytes();
    if (vertices_ < have / 8 && 8 * vertices_ + held < have) return;
    throw_os_error(options_.operation, target_, ENOMEM,
                   std::to_string(vertices_) + " vertices need 8 bytes of memory each" +
                       (held == 0 ? "" : ", and the source " + std::to_string(held) + " more") + "; the machine has " +
                       std::to_string(have) +
                       ": number the vertices without gaps, choose a smaller graph, or use a larger machine");
  }

  /// Shares out what the limit leaves between the threads and the edges.
  void fit_memory() {
    if (options_.memory_limit == 0) return;
    u64 const held = (vertices_ + 1) * sizeof(u64) + source_.held_bytes() + slack_bytes;
    u64 const least = held + 2 * worker_bytes;
    if (options_.memory_limit < least) limit_too_small(least);
    u64 const left = options_.memory_limit - held;
    threads_ = static_cast<unsigned>(std::min<u64>(threads_, left / 2 / worker_bytes));
    edge_bytes_ = left - threads_ * worker_bytes;
  }

  /// Before hours of work. How many edges are left of duplicates nobody knows yet.
  void check_space(u64 edges) const {
    struct statvfs about{};
    if (options_.drop_duplicates || ::statvfs(folder_.c_str(), &about) != 0) return;
    u64 const edge_bytes = (wide_ids() ? 8 : 4) + (source_.weights() == weight_type::none ? 0 : 4);
    u64 const need = edges * edge_bytes + (vertices_ + 1) * sizeof(u64), free = u64{about.f_bavail} * about.f_frsize;
    if (need > free)
      throw_os_error(options_.operation, target_, ENOSPC,
                     std::to_string(edges) + " edges take " + std::to_string(need) + " bytes there, " + std::to_string(free) +
                         " are free: make room, or choose another folder");
  }

  [[noreturn]] void limit_too_small(u64 least) const {
    constexpr u64 mib = u64{1} << 20;
    u64 const given = options_.memory_limit;
    std::string const limit = given < mib ? std::to_string(given) + " bytes" : std::to_string(given / mib) + " MiB";
    throw_bad_input(options_.operation, target_,
                    "a memory limit of " + limit + " is too small for " + std::to_string(vertices_) +
                        " vertices and the longest of their lists: give at least " + std::to_string((least + mib - 1) / mib) +
                        " MiB");
  }

  template <class F>
  void each_direction(edge const& e, F const& f) const {
    if (e.from >= vertices_ || e.to >= vertices_) changed();
    if (e.from == e.to) {
      if (!options_.drop_self_loops) f(e);
      return;
    }
    f(e);
    if (options_.symmetrise) f(edge{e.to, e.from, e.weight});
  }

  [[noreturn]] void changed() const {
    throw_os_error(options_.operation, target_, EIO, "the input changed while it was read; start again");
  }

  vertex_bins count() {
    vertex_bins bins(vertices_);
    std::vector<std::vector<u64>> counts(threads_);
    parallel_for_workers(source_.blocks(), threads_, meter_, [&](u64 block, unsigned worker) {
      std::vector<u64>& mine = counts[worker];
      mine.resize(bins.count());
      source_.produce(block, [&](std::span<edge const> edges) {
        for (edge const& e : edges) each_direction(e, [&](edge const& d) { ++mine[bins.of(d.from)]; });
      });
    });
    for (auto const& mine : counts)
      if (!mine.empty()) bins.add(mine);
    return bins;
  }

  /// How many edges may be held at once.
  u64 most_edges(vertex_bins const& bins, u64 entry_bytes) {
    if (options_.memory_limit != 0) {
      u64 const longest = bins.largest() * entry_bytes;
      // A long list is worth more than threads.
      for (; longest > edge_bytes_ && threads_ > 1; --threads_) edge_bytes_ += worker_bytes;
      if (longest > edge_bytes_) limit_too_small(options_.memory_limit - edge_bytes_ + longest);
      return edge_bytes_ / entry_bytes;
    }
    u64 const passes = std::max<u64>(1, source_.worthwhile_passes());
    return std::max(options_.budget_bytes / entry_bytes, (bins.total() + passes - 1) / passes);
  }

  template <class Entry>
  void write_edges(vertex_bins const& bins, u64 progress_at) {
    open_files();
    std::vector<bin_range> const passes = bins.passes(most_edges(bins, sizeof(Entry)));
    u64 longest = 0, done = 0;
    for (bin_range const& pass : passes) longest = std::max(longest, pass.edges);
    paged_buffer<Entry> const buffer(longest);
    for (bin_range const& range : passes) {
      u64 const total = std::max<u64>(1, bins.total());
      auto const at = [&](u64 edges) { return progress_at + (990 - progress_at) * edges / total; };
      bucket_pass pass = bins.buckets(range);
      write_pass<Entry>(bins, pass, buffer.items(), at(done), at(done + range.edges));
      done += range.edges;
    }
    close_files();
  }

  /// The lists of the pass's vertices to the end of the files; their offsets_ become the numbers of edges that were kept.
  template <class Entry>
  void write_pass(vertex_bins const& bins, bucket_pass& pass, std::span<Entry> buffer, u64 progress_at, u64 progress_to) {
    u64 const shared_out = progress_at + (progress_to - progress_at) * 2 / 3;
    meter_.phase(progress_at, shared_out);
    share_out(bins, pass, buffer);
    bucket_settler<Entry> settler(threads_, id_bits_, options_, std::span(offsets_));
    // While the buckets of one group are sorted, those of the one before are written, which the system lets one thread do at
    // a time.
    std::vector<bucket>& buckets = pass.buckets;
    u64 const group = u64{16} * threads_;
    for (u64 begin = 0; begin < buckets.size() + group; begin += group) {
      auto const at = [&](u64 b) { return shared_out + (progress_to - shared_out) * b / (buckets.size() + group); };
      meter_.phase(at(begin), at(std::min(begin + group, buckets.size() + group)));
      parallel_for_workers(2 * group, threads_, meter_, [&](u64 i, unsigned worker) {
        u64 const b = begin + i / 2;
        if (i % 2 == 0 && b < buckets.size()) settler.settle(worker, buckets[b], buffer);
        if (i % 2 == 1 && b >= group && b - group < buckets.size()) append<Entry>(buckets[b - group], buffer);
      });
      for (u64 b = begin; b < std::min(begin + group, buckets.size()); ++b)
        buckets[b].position = std::exchange(written_, written_ + buckets[b].kept);
    }
    balance_ += settler.balance();
  }

  /// All edges of the pass's vertices into their buckets.
  template <class Entry>
  void share_out(vertex_bins const& bins, bucket_pass const& pass, std::span<Entry> buffer) {
    bucket_store<Entry> store(pass, buffer);
    std::vector<std::optional<typename bucket_store<Entry>::collector>> collectors(threads_);
    parallel_for_workers(source_.blocks(), threads_, meter_, [&](u64 block, unsigned worker) {
      if (!collectors[worker]) collectors[worker].emplace(store);
      auto& mine = *collectors[worker];
      source_.produce(block, [&](std::span<edge const> edges) {
        for (edge const& e : edges)
          each_direction(e, [&](edge const& d) {
            u16 const bucket = pass.bucket_of[bins.of(d.from)];
            if (bucket != bucket_pass::none && !mine.put(bucket, Entry::of(d, id_bits_))) changed();
          });
      });
    });
    for (auto& collector : collectors)
      if (collector && !collector->finish()) changed();
    if (!store.full()) changed();
  }

  void open_files() {
    edges_file_.emplace(file::create(folder_ + "/edges.npy"));
    if (source_.weights() != weight_type::none) weights_file_.emplace(file::create(folder_ + "/weights.npy"));
  }

  void close_files() {
    close_file(*edges_file_, 'i', wide_ids() ? 8 : 4);
    if (weights_file_) close_file(*weights_file_, source_.weights() == weight_type::float32 ? 'f' : 'i', 4);
  }

  void close_file(file& out, char kind, u32 item_bytes) const {
    auto const header = make_npy_header(kind, item_bytes, {written_});
    out.write(0, std::as_bytes(std::span(header)));
    out.sync_and_close();
  }

  template <class Entry>
  void append(bucket const& b, std::span<Entry const> buffer) const {
    wide_ids() ? append_as<std::int64_t>(b, buffer) : append_as<std::int32_t>(b, buffer);
  }

  template <class Id, class Entry>
  void append_as(bucket const& b, std::span<Entry const> buffer) const {
    constexpr u64 step = u64{1} << 16;
    u64 const mask = (u64{1} << id_bits_) - 1;
    for (u64 done = 0; done < b.kept; done += step) {
      std::span<Entry const> const edges = buffer.subspan(b.begin + done, std::min(step, b.kept - done));
      write_items<Id>(*edges_file_, b.position + done, edges, [&](Entry const& e) { return e.key() & mask; });
      if (weights_file_) write_items<u32>(*weights_file_, b.position + done, edges, [](Entry const& e) { return e.weight(); });
    }
  }

  /// Turns the numbers of edges into offsets and writes them.
  void write_offsets() {
    u64 sum = 0;
    for (u64& offset : offsets_) sum += std::exchange(offset, sum);
    file out = file::create(folder_ + "/offsets.npy");
    auto const header = make_npy_header('u', 8, {offsets_.size()});
    out.write(0, std::as_bytes(std::span(header)));
    out.write(npy_data_offset, bytes_of(offsets_));
    out.sync_and_close();
  }

  edge_source const& source_;
  std::string const& folder_;
  std::string const& target_;
  build_options const& options_;
  progress_meter& meter_;
  unsigned threads_;
  u64 vertices_;
  u32 id_bits_;
  u64 edge_bytes_ = 0;  ///< with a memory limit: what it leaves for edges
  std::vector<u64> offsets_;
  std::optional<file> edges_file_, weights_file_;
  u64 written_ = 0;  ///< entries in the files
  u64 balance_ = 0;  ///< of the edges' signed_fingerprint
};

}  // namespace

u64 roomy_budget() {
  constexpr u64 least = u64{128} << 20;
  std::ifstream facts("/proc/meminfo");
  for (std::string name, unit; facts >> name;) {
    u64 amount = 0;
    if (!(facts >> amount)) break;
    std::getline(facts, unit);
    if (name == "MemAvailable:") return std::max(least, amount * 1024 / 8);
  }
  return least;
}

csr_counts build_csr(edge_source const& source, std::string const& folder, build_options const& options, progress_meter& meter,
                     u64 progress_from) {
  return csr_build(source, folder, options, meter).run(progress_from);
}

}  // namespace penstock::graph
