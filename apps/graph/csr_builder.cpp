#include "apps/graph/csr_builder.hpp"

#include "apps/graph/file.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <compare>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::graph {
namespace {

template <class Id>
struct weighted_entry {
  Id to;
  u32 weight;

  friend auto operator<=>(weighted_entry const&, weighted_entry const&) = default;
};

template <class Id>
Id neighbour(Id entry) {
  return entry;
}
template <class Id>
Id neighbour(weighted_entry<Id> const& entry) {
  return entry.to;
}

template <class Id>
void store(Id& entry, edge const& e) {
  entry = static_cast<Id>(e.to);
}
template <class Id>
void store(weighted_entry<Id>& entry, edge const& e) {
  entry = {static_cast<Id>(e.to), e.weight};
}

template <class T>
auto bytes_of(std::vector<T> const& v) {
  return std::as_bytes(std::span(v));
}

/// Vertices [first, last), whose lists lie together from `begin` on in the buffer of the pass.
struct chunk {
  u64 first;
  u64 last;
  u64 begin;
  u64 kept = 0;  ///< entries left after dropping, moved to the chunk's begin
};

class csr_build {
 public:
  csr_build(edge_source const& source, std::string const& folder, build_options const& options, progress_meter& meter)
      : source_(source), folder_(folder), options_(options), meter_(meter), threads_(worker_count(options.threads)) {}

  csr_counts run(u64 progress_from) {
    check_memory();
    offsets_.resize(source_.vertices() + 1);
    u64 const counted = progress_from + (1000 - progress_from) / 4;
    meter_.phase(progress_from, counted);
    count();
    bool const wide = options_.wide_ids || source_.vertices() >= u64{1} << 31;
    bool const weighted = source_.weights() != weight_type::none;
    if (wide)
      weighted ? write_edges<i64, weighted_entry<i64>>(counted) : write_edges<i64, i64>(counted);
    else
      weighted ? write_edges<i32, weighted_entry<i32>>(counted) : write_edges<i32, i32>(counted);
    write_offsets();
    meter_.phase(990, 1000);
    meter_.report(1, 1);
    return {source_.vertices(), written_};
  }

 private:
  using i32 = std::int32_t;
  using i64 = std::int64_t;

  void check_memory() const {
    u64 const have = static_cast<u64>(::sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(::sysconf(_SC_PAGESIZE));
    if (source_.vertices() < have / 16) return;
    throw_os_error("convert to", folder_, ENOMEM,
                   std::to_string(source_.vertices()) + " vertices need 16 bytes of memory each, the machine has " +
                       std::to_string(have) + ": number the vertices without gaps, or use a larger machine");
  }

  template <class F>
  void each_direction(edge const& e, F const& f) const {
    if (e.from == e.to) {
      if (!options_.drop_self_loops) f(e);
      return;
    }
    f(e);
    if (options_.symmetrise) f(edge{e.to, e.from, e.weight});
  }

  /// offsets_[v] becomes the number of edges of v before anything is dropped.
  void count() {
    u64 const vertices = source_.vertices();
    parallel_for(source_.blocks(), threads_, meter_, [&](u64 block) {
      source_.produce(block, [&](std::span<edge const> edges) {
        for (edge const& e : edges) {
          if (e.from >= vertices || e.to >= vertices) changed();
          each_direction(e, [&](edge const& d) { std::atomic_ref(offsets_[d.from]).fetch_add(1, std::memory_order_relaxed); });
        }
      });
    });
  }

  [[noreturn]] void changed() const {
    throw_os_error("convert to", folder_, EIO, "the input changed while it was read; start again");
  }

  template <class Id, class Entry>
  void write_edges(u64 progress_at) {
    edges_file_.emplace(file::create(folder_ + "/edges.npy"));
    if constexpr (!std::is_same_v<Id, Entry>) weights_file_.emplace(file::create(folder_ + "/weights.npy"));
    u64 total = 0;
    for (u64 degree : offsets_) total += degree;
    u64 const passes = std::max<u64>(1, source_.worthwhile_passes());
    u64 const budget = std::max({options_.budget_bytes / sizeof(Entry), (total + passes - 1) / passes, u64{1}});
    u64 done = 0;
    for (u64 first = 0; first < source_.vertices();) {
      u64 last = first, entries = 0;
      while (last < source_.vertices() && (last == first || entries + offsets_[last] <= budget)) entries += offsets_[last++];
      auto const at = [&](u64 n) { return progress_at + (990 - progress_at) * n / std::max<u64>(1, total); };
      write_range<Id, Entry>(first, last, entries, at(done), at(done + entries));
      done += entries;
      first = last;
    }
    auto const header = make_npy_header('i', sizeof(Id), {written_});
    edges_file_->write(0, std::as_bytes(std::span(header)));
    edges_file_->sync_and_close();
    if constexpr (!std::is_same_v<Id, Entry>) {
      auto const weights_header = make_npy_header(source_.weights() == weight_type::float32 ? 'f' : 'i', 4, {written_});
      weights_file_->write(0, std::as_bytes(std::span(weights_header)));
      weights_file_->sync_and_close();
    }
  }

  /// The lists of vertices [first, last), `entries` of them before dropping, to the end of the files; their offsets_ become the
  /// numbers that were kept.
  template <class Id, class Entry>
  void write_range(u64 first, u64 last, u64 entries, u64 progress_at, u64 progress_to) {
    auto const buffer = std::make_unique_for_overwrite<Entry[]>(entries);
    u64 const sorted_from = progress_at + (progress_to - progress_at) * 2 / 3;
    meter_.phase(progress_at, sorted_from);
    gather(first, last, std::span(buffer.get(), entries));
    meter_.phase(sorted_from, progress_to);
    std::vector<chunk> chunks = cut(first, last);
    parallel_for(chunks.size(), threads_, meter_, [&](u64 i) { settle(chunks[i], buffer.get()); });
    std::vector<u64> positions;
    for (chunk const& c : chunks) {
      positions.push_back(written_);
      written_ += c.kept;
    }
    parallel_for(chunks.size(), threads_, meter_, [&](u64 i) {
      append<Id>(std::span<Entry const>(buffer.get() + chunks[i].begin, chunks[i].kept), positions[i]);
    });
  }

  template <class Entry>
  void gather(u64 first, u64 last, std::span<Entry> buffer) {
    std::vector<u64> cursors(last - first);
    u64 begin = 0;
    for (u64 v = first; v < last; ++v) {
      cursors[v - first] = begin;
      begin += offsets_[v];
    }
    parallel_for(source_.blocks(), threads_, meter_, [&](u64 block) {
      source_.produce(block, [&](std::span<edge const> edges) {
        for (edge const& e : edges)
          each_direction(e, [&](edge const& d) {
            if (d.from - first >= last - first) return;
            u64 const at = std::atomic_ref(cursors[d.from - first]).fetch_add(1, std::memory_order_relaxed);
            if (at >= buffer.size()) changed();
            store(buffer[at], d);
          });
      });
    });
    u64 end = 0;
    for (u64 v = first; v < last; ++v)
      if (cursors[v - first] != (end += offsets_[v])) changed();
  }

  std::vector<chunk> cut(u64 first, u64 last) const {
    constexpr u64 chunk_entries = u64{1} << 16;
    std::vector<chunk> chunks;
    u64 begin = 0;
    while (first < last) {
      chunk c{first, first, begin};
      u64 entries = 0;
      // Vertices count, too, so that long runs of them without edges are shared out.
      while (c.last < last && entries + (c.last - c.first) < chunk_entries) entries += offsets_[c.last++];
      chunks.push_back(c);
      first = c.last;
      begin += entries;
    }
    return chunks;
  }

  /// Sorts the lists of a chunk, drops duplicates if asked, and closes the gaps.
  template <class Entry>
  void settle(chunk& c, Entry* buffer) {
    Entry* from = buffer + c.begin;
    Entry* to = from;
    for (u64 v = c.first; v < c.last; ++v) {
      Entry* const end = from + offsets_[v];
      std::sort(from, end);
      Entry* kept_end = end;
      if (options_.drop_duplicates)
        kept_end = std::unique(from, end, [](Entry const& a, Entry const& b) { return neighbour(a) == neighbour(b); });
      to = std::copy(from, kept_end, to);
      offsets_[v] = static_cast<u64>(kept_end - from);
      from = end;
    }
    c.kept = static_cast<u64>(to - (buffer + c.begin));
  }

  template <class Id, class Entry>
  void append(std::span<Entry const> entries, u64 position) const {
    if constexpr (std::is_same_v<Id, Entry>) {
      edges_file_->write(npy_data_offset + position * sizeof(Id), std::as_bytes(entries));
    } else {
      std::vector<Id> ids;
      std::vector<u32> weights;
      for (Entry const& e : entries) {
        ids.push_back(e.to);
        weights.push_back(e.weight);
      }
      edges_file_->write(npy_data_offset + position * sizeof(Id), bytes_of(ids));
      weights_file_->write(npy_data_offset + position * sizeof(u32), bytes_of(weights));
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
  build_options const& options_;
  progress_meter& meter_;
  unsigned threads_;
  std::vector<u64> offsets_;
  std::optional<file> edges_file_, weights_file_;
  u64 written_ = 0;  ///< entries in the files
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
