#include "libs/volume/import.hpp"

#include "libs/graph/file.hpp"
#include "libs/graph/graph_folder.hpp"
#include "libs/volume/checksums.hpp"
#include "libs/volume/crc32c.hpp"
#include "libs/volume/little_endian.hpp"
#include "libs/volume/reporter.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <algorithm>
#include <filesystem>

namespace penstock::volumes {
namespace {

namespace fs = std::filesystem;

constexpr char const* table_file = "table.json";  // of a folder of columns

struct source {
  graph::file from;
  stored_file as;
};

array_layout layout_of(graph::file const& from) {
  std::vector<std::byte> head(std::min(from.size(), npy_longest_start));
  from.read(0, head);
  const npy_header header = parse_npy_header(head, from.size(), from.path());
  if (header.shape.size() > most_dimensions) {
    throw_bad_input(
        "import", from.path(),
        header.describe() + ": a volume knows arrays of up to " + std::to_string(most_dimensions) + " dimensions: reshape it");
  }
  return {header.kind, header.fortran && header.shape.size() > 1, header.item_bytes, header.shape, header.data_offset};
}

source source_of(std::string const& name, std::string const& path, bool of_folder) {
  source made{graph::file::open(path), {}};
  made.as.name = name;
  made.as.of_folder = of_folder;
  if (path.ends_with(".npy")) made.as.array = layout_of(made.from);
  made.as.file_bytes = made.from.size();
  if (const std::string problem = problem_of_file_name(name, of_folder); !problem.empty()) {
    throw_bad_input("import", path, "as '" + name + "': " + problem + ": rename it");
  }
  return made;
}

bool is_folder(std::string const& path) {
  std::error_code nothing_there;
  return fs::is_directory(path, nothing_there);
}

std::vector<std::string> files_in(std::string const& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (auto each = fs::directory_iterator(folder, problem); !problem && each != fs::directory_iterator();
       each.increment(problem)) {
    if (each->is_regular_file(problem)) names.push_back(each->path().filename().string());
  }
  if (problem) throw_os_error("import", folder, problem.value(), "check the folder and its permissions");
  return names;
}

std::vector<source> sources_of(std::string const& name, std::string const& path) {
  std::vector<source> all;
  if (!is_folder(path)) {
    all.push_back(source_of(name, path, false));
    return all;
  }
  using place = std::filesystem::path;
  std::error_code nothing_there;
  // Opening says what is wrong with it.
  if (!fs::is_regular_file(place(path) / table_file, nothing_there)) graph::graph_folder::open(path);
  for (char const* folder : {"", "incoming/"}) {
    const place from = place(path) / folder, to = place(name) / folder;
    if (!is_folder(from.string())) continue;
    for (std::string const& file : files_in(from.string()))
      all.push_back(source_of((to / file).string(), (from / file).string(), true));
  }
  std::ranges::sort(all, {}, [](source const& each) { return each.as.name; });
  return all;
}

/// Puts an extent for the file where there is room, and the file into the table.
void place(stored_file& file, contents& table, geometry const& shape) {
  const u64 head = round_up(file.array.data_offset, page_bytes);
  const u64 data = round_up(head - file.array.data_offset + file.file_bytes, page_bytes);
  // Chunks are cut where the extent happens to lie: one more than it would have at the beginning of one.
  const u64 sums = round_up((data / shape.chunk_bytes() + 2) * sizeof(u32), page_bytes);
  file.bytes = data + sums;
  file.begin = find_room(table, shape, file.bytes);
  if (file.begin == 0) {
    throw_bad_input("import", file.name,
                    "it needs " + std::to_string(file.bytes) + " bytes in one piece, and the volume has " +
                        std::to_string(free_bytes(table, shape)) + " free: remove something, or make a larger volume");
  }
  file.sums_begin = file.begin + data;
  file.file_begin = file.begin + head - file.array.data_offset;
  const auto after = std::ranges::upper_bound(table.files, file.begin, {}, &stored_file::begin);
  table.files.insert(after, file);
}

/// Writes one file's extent and gives the checksum of its checksums.
class extent_writer {
 public:
  extent_writer(volume& to, source const& from, std::vector<std::byte>& buffer, reporter& report)
      : volume_(to), from_(from.from), file_(from.as), buffer_(buffer), report_(report) {}

  u32 write() {
    for (u64 begin = file_.begin; begin < file_.sums_begin;) {
      const u64 end = window_end(volume_.shape(), begin, file_.sums_begin);
      const std::span<std::byte> window = std::span(buffer_).first(end - begin);
      fill(begin, window);
      add_sums(begin, window);
      volume_.write(begin, window);
      begin = end;
    }
    return write_sums();
  }

 private:
  void fill(u64 begin, std::span<std::byte> window) {
    const u64 from = std::clamp(file_.file_begin, begin, begin + window.size());
    const u64 until = std::clamp(file_.file_begin + file_.file_bytes, begin, begin + window.size());
    std::ranges::fill(window, std::byte{0});
    from_.read(from - file_.file_begin, window.subspan(from - begin, until - from));
    report_.add(until - from);
  }

  void add_sums(u64 begin, std::span<std::byte const> window) {
    while (!window.empty()) {
      const chunk each = chunk_of(file_, volume_.shape(), sums_.size());
      sums_.push_back(crc32c(window.subspan(each.address - begin, each.bytes)));
      window = window.subspan(each.bytes);
      begin += each.bytes;
    }
  }

  u32 write_sums() {
    std::vector<std::byte> bytes(file_.end() - file_.sums_begin);
    field_writer to(bytes);
    for (const u32 each : sums_) to.put(each);
    volume_.write(file_.sums_begin, bytes);
    return crc32c(std::span(bytes).first(sums_.size() * sizeof(u32)));
  }

  volume& volume_;
  graph::file const& from_;
  stored_file const& file_;
  std::vector<std::byte>& buffer_;
  reporter& report_;
  std::vector<u32> sums_;
};

void check_free(volume const& to, std::string const& name) {
  if (const std::string problem = problem_of_entry_name(name); !problem.empty()) {
    throw_bad_input("import", "'" + name + "'", problem + ": choose another name");
  }
  const auto taken = [&](stored_file const& each) { return each.entry() == name; };
  if (std::ranges::any_of(to.table().files, taken)) {
    throw_bad_input("import", name, "the volume has it already: choose another name, or remove that one first");
  }
}

}  // namespace

moved import_entry(volume& to, std::string const& name, std::string const& path, progress_fn const& progress) {
  const u64 begun = now_ns();
  check_free(to, name);
  std::vector<source> sources = sources_of(name, path);
  contents next = to.table();
  moved done{sources.size()};
  for (source& each : sources) {
    place(each.as, next, to.shape());
    done.bytes += each.as.file_bytes;
  }
  encode(next);  // refuses what a table cannot hold
  reporter report(progress, "importing", done.bytes);
  std::vector<std::byte> buffer;
  for (source const& each : sources) {
    buffer.resize(std::max(buffer.size(), std::min(window_bytes(to.shape()), each.as.sums_begin - each.as.begin)));
    const u32 crc = extent_writer(to, each, buffer, report).write();
    std::ranges::find(next.files, each.as.begin, &stored_file::begin)->sums_crc = crc;
  }
  report.now();
  to.commit(std::move(next));
  done.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  return done;
}

void remove_entry(volume& from, std::string const& name) {
  from.files_of(name);  // which says that there is none
  contents next = from.table();
  std::erase_if(next.files, [&](stored_file const& each) { return each.entry() == name; });
  from.commit(std::move(next));
}

}  // namespace penstock::volumes
