// Prints the rows of a CSV file whose number in a column lies in a range: a warp parses each part of the file.
//
//   csv_filter FILE.csv COLUMN MIN [MAX]        the header and, in the order of the file, rows with MIN <= number <= MAX
//
// RFC 4180: fields may be quoted, with commas, line ends and doubled quotes inside; lines end with LF or CRLF. A part may begin
// inside a quoted field: the first kernel counts the quotes of each part, the host computes the parity before each part, and
// the second kernel parses. A part owns the records that follow its line ends; the last one may end in a later part.
//
// Numbers (-1.5e3) are compared as decimals, by their first 19 digits. An empty field, or one that is no number, does not
// match; the program prints the count of such rows to standard error. Empty lines are skipped. A row with more or fewer fields
// than the header, an unclosed quote, and a quote that neither encloses a field nor is doubled are errors: the program prints
// the matching rows before it, then its line number, and exits with status 2.
#include "csv_record.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

constexpr u64 part_bytes = 65536;   // parsed by one warp
constexpr u64 window_bytes = 4096;  // read and parsed by its lanes at once
constexpr u64 batch_parts = 4096;   // per launch
constexpr u64 cache_bytes = 16 << 20;

struct row_range {
  u64 begin, end;
};

/// The parts of a launch, for both kernels.
struct csv_parts {
  penstock::folder_view folder;
  char const* name;
  u32 name_bytes;
  u64 first, size;  // the header's line end; the end of the file
  u64 first_part;   // of this launch
  char* windows;    // [items][window_bytes]
  u32* error;       // an errno

  /// Calls body(file, part, window) for each item.
  template <class Group, class Body>
  PENSTOCK_FN void for_each(Group const& g, penstock::grid_range range, Body const& body) const {
    const auto opened = folder.open(g, name, name_bytes, penstock::file_flag::read);
    u32 failed = opened.error;
    for (u64 k = range.first; k < range.last && failed == 0; k += range.step) {
      failed = body(opened.file, k, windows + range.first * window_bytes);
    }
    if (opened.ok()) folder.close(g, opened.file);
    if (failed != 0 && penstock::is_leader(g)) penstock::device_ref<u32>(*error).store(failed, penstock::relaxed);
  }

  /// Reads a window. ESTALE: the file was truncated meanwhile.
  template <class Group>
  PENSTOCK_FN penstock::file_result read(Group const& g, penstock::file_descriptor const& file, char* to, u64 bytes,
                                         u64 at) const {
    penstock::converge_after_call(g);  // all lanes have read the window before it is overwritten
    auto got = folder.pread(g, file, to, bytes < size - at ? bytes : size - at, at);
    if (got.ok() && got.value == 0) got.error = ESTALE;
    return got;
  }
  PENSTOCK_FN u64 begin_of(u64 item) const { return first + (first_part + item) * part_bytes; }
  PENSTOCK_FN u64 end_of(u64 item) const { return begin_of(item) + part_bytes < size ? begin_of(item) + part_bytes : size; }
};

struct count_quotes {
  csv_parts parts;
  u32* quotes;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    parts.for_each(g, range, [&](penstock::file_descriptor const& file, u64 k, char* window) -> u32 {
      u32 found = 0;
      for (u64 at = parts.begin_of(k), end = parts.end_of(k); at < end;) {
        const auto got = parts.read(g, file, window, end - at < window_bytes ? end - at : window_bytes, at);
        if (!got.ok()) return got.error;
        for (u64 i = penstock::index_in(g); i < got.value; i += penstock::size(g)) found += window[i] == '"';
        at += got.value;
      }
      penstock::device_ref<u32>(quotes[k]).fetch_add(found, penstock::relaxed);
      return 0;
    });
  }
};

struct parse_parts {
  csv_parts parts;
  condition wanted;
  u32 const* inside;  // [items] 1: the part begins in quotes
  row_range* rows;    // the matching ones
  u64 room;           // capacity of rows
  u64* used;
  u64* no_numbers;
  u64* first_wrong;  // the least of offset << 3 | problem

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    parts.for_each(g, range,
                   [&](penstock::file_descriptor const& file, u64 k, char* window) { return parse(g, file, k, window); });
  }

 private:
  template <class Group>
  PENSTOCK_FN u32 parse(Group const& g, penstock::file_descriptor const& file, u64 k, char* window) const {
    record_parser record;  // this lane's
    const u64 end = parts.end_of(k);
    bool in_quotes = inside[k] != 0;
    for (u64 at = parts.begin_of(k); at < parts.size && (at < end || penstock::any_of(g, record.active));) {
      const auto got = parts.read(g, file, window, window_bytes, at);
      if (!got.ok()) return got.error;
      if (record.active) take(record, window, 0, got.value, at);
      // A lane owns the records that follow line ends in its slice; the last one may end behind the slice.
      const u64 width = penstock::ceil_div(got.value, penstock::size(g)), from = penstock::index_in(g) * width;
      const u64 to = from + width < got.value ? from + width : got.value, owned = at < end ? end - at : 0;
      bool odd = false;
      for (u64 i = from; i < to; ++i) odd ^= window[i] == '"';
      const auto odd_lanes = g.ballot(odd);
      const bool begins_in_quotes = in_quotes ^ ((penstock::count_below(odd_lanes, g.rank()) & 1) != 0);
      in_quotes ^= (penstock::count(odd_lanes) & 1) != 0;
      if (!record.active) take_slice(record, window, from, to < owned ? to : owned, got.value, at, begins_in_quotes);
      at += got.value;
    }
    if (record.active) finish(record, parts.size);
    return 0;
  }

  PENSTOCK_FN void take_slice(record_parser& record, char const* window, u64 from, u64 to, u64 count, u64 at,
                              bool in_quotes) const {
    u64 i = from;
    for (; i < to && (in_quotes || window[i] != '\n'); ++i) in_quotes ^= window[i] == '"';
    while (i < to && !record.active && at + i + 1 < parts.size) {  // i: a line end
      record.start(at + i + 1);
      i = take(record, window, i + 1, count, at);
    }
  }

  /// Parses until the record ends; returns the index of its line end, or `count`.
  PENSTOCK_FN u64 take(record_parser& record, char const* window, u64 i, u64 count, u64 at) const {
    for (; i < count; ++i) {
      const bool over = record.take(window[i], at + i, wanted);
      if (!over && record.wrong == problem::none) continue;
      finish(record, at + i + 1);
      return over ? i : count;
    }
    return count;
  }

  PENSTOCK_FN void finish(record_parser& record, u64 end) const {
    if (record.wrong == problem::none) record.end(wanted);
    record.active = false;
    decimal value;
    if (record.wrong != problem::none) {
      const bool fields = record.wrong == problem::few_fields || record.wrong == problem::many_fields;
      penstock::lower_to(*first_wrong, (fields ? record.begin : record.quote) << 3 | static_cast<u64>(record.wrong));
    } else if (!record.blank && !record.has_number(value)) {
      penstock::device_ref<u64>(*no_numbers).fetch_add(1, penstock::relaxed);
    } else if (!record.blank && wanted.holds(value)) {
      const u64 slot = penstock::device_ref<u64>(*used).fetch_add(1, penstock::relaxed);
      if (slot < room) rows[slot] = {record.begin, end};
    }
  }
};

[[noreturn]] void fail(std::string const& what) { throw penstock::error(penstock::error_kind::bad_input, what); }

/// The file on the host, which reads the header, the matching rows, and the lines before an error.
struct host_file {
  std::string path;
  std::filesystem::file_time_type written = std::filesystem::last_write_time(path);
  u64 size = std::filesystem::file_size(path);
  std::ifstream stream{path, std::ios::binary};

  /// Calls use(text) with at most a MiB at a time.
  template <class Use>
  void read(u64 from, u64 to, Use const& use) {
    stream.seekg(static_cast<std::streamoff>(from));
    for (std::string text; from < to; from += text.size()) {
      text.resize(std::min<u64>(to - from, 1 << 20));
      if (!stream.read(text.data(), static_cast<std::streamsize>(text.size())))
        fail("read " + path + ": check that it can be read");
      use(text);
    }
  }
  /// Kernels read zeros where another process has truncated the file.
  void check_unchanged() const {
    if (std::filesystem::last_write_time(path) != written) fail(path + ": it was changed meanwhile: start again");
  }
  void print(row_range rows) {
    read(rows.begin, rows.end, [](std::string const& text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    if (rows.end == size && rows.begin < size)
      read(size - 1, size, [](auto& last) { std::fputs(last == "\n" ? "" : "\n", stdout); });
    if (std::ferror(stdout) != 0) penstock::throw_os_error("write", "the rows", errno, "make room, or read all of them");
  }
};

struct csv_header {
  std::vector<std::string> names{""};
  u64 end = 0;  // its line end, or the end of the file
};

csv_header read_header(host_file& file) {
  std::string text;
  file.read(0, std::min<u64>(file.size, 1 << 20), [&](std::string const& all) { text = all; });
  csv_header header;
  bool quoted = false;
  u64 at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
    const char c = text[at];
    if (c == '"' && quoted && text.substr(at + 1, 1) == "\"")
      header.names.back() += text[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      header.names.emplace_back();
    else if (quoted || c != '\r')
      header.names.back() += c;
  }
  if (text.empty()) fail(file.path + ": the file is empty: its first line must name the columns");
  if (quoted || (at == text.size() && at < file.size)) {
    fail(file.path + ": line 1: the header does not end: close its quotes, and give it no more than 1 MiB");
  }
  header.end = at;
  return header;
}

u32 find_column(host_file const& file, csv_header const& header, std::string const& name) {
  const auto found = std::find(header.names.begin(), header.names.end(), name);
  if (found != header.names.end()) return static_cast<u32>(found - header.names.begin());
  std::string all;
  for (std::string const& other : header.names) all += (all.empty() ? "" : ", ") + other;
  fail(file.path + ": there is no column " + name + ": choose one of " + all);
}

decimal read_number(std::string const& text) {
  decimal value;
  if (!read_decimal(text.data(), static_cast<u32>(text.size()), value))
    fail(text + ": this is no number: write it like -1.5e3");
  return value;
}

[[noreturn]] void report(host_file& file, u64 wrong) {
  static char const* const problems[] = {"",
                                         "the quote that opens here is not closed: close it",
                                         "text follows the quote that closes this field: double quotes inside of it",
                                         "a quote stands in a field without quotes: put the field in quotes and double it",
                                         "the row has fewer fields than the header: add the others, empty",
                                         "the row has more fields than the header: put fields with commas in quotes"};
  std::fflush(stdout);
  u64 line = 1;  // as editors count, whether a line end is in quotes or not
  const auto count_line_ends = [&](std::string const& text) {
    line += static_cast<u64>(std::count(text.begin(), text.end(), '\n'));
  };
  file.read(0, wrong >> 3, count_line_ends);
  fail(file.path + ": line " + std::to_string(line) + ": " + problems[wrong & 7]);
}

/// Owns the folder and the buffers of the kernels.
class csv_filter {
 public:
  csv_filter(penstock::executor& on, host_file& file, u64 first, condition const& wanted)
      : on_(on), file_(file), first_(first), wanted_(wanted), path_(std::filesystem::canonical(file.path)),
        folder_(on, path_.parent_path(), {.cache = {.bytes = cache_bytes}}),
        name_(make<char>(path_.filename().string().size())), windows_(make<char>(batch_parts * window_bytes)),
        error_(make<u32>(1)), per_part_(make<u32>(batch_parts)), counts_(make<u64>(3)), rows_(make<row_range>(part_bytes)) {
    name_.write(path_.filename().string());
  }

  /// Prints the header and the matching rows. Returns the count of rows without a number.
  u64 run() {
    const u64 parts = penstock::ceil_div(file_.size - first_, part_bytes);
    std::vector<u32> inside(penstock::round_up(parts, batch_parts));
    for (u64 first = 0; first < parts; first += batch_parts) {
      per_part_.write(std::vector<u32>(batch_parts));
      launch(std::min(batch_parts, parts - first), count_quotes{parts_from(first), per_part_.data()});
      per_part_.read(std::span(inside).subspan(first, batch_parts));
    }
    bool odd = false;
    for (u32& quotes : inside) odd ^= std::exchange(quotes, odd ? 1u : 0u) % 2 != 0;
    file_.print({0, std::min(first_ + 1, file_.size)});
    u64 no_numbers = 0;
    for (u64 first = 0; first < parts; first += batch_parts) {
      per_part_.write(std::span(inside).subspan(first, batch_parts));
      no_numbers += filter(first, std::min(batch_parts, parts - first));
    }
    if (std::fflush(stdout) != 0) file_.print({0, 0});  // the error
    return no_numbers;
  }

 private:
  template <class T>
  penstock::buffer<T> make(u64 elements) {
    return {on_.memory(), penstock::memory_kind::local, elements};
  }
  csv_parts parts_from(u64 first) const {
    return {folder_.view(),  name_.data(), static_cast<u32>(name_.size()), first_, file_.size, first,
            windows_.data(), error_.data()};
  }
  template <class Body>
  void launch(u64 items, Body const& body) {
    penstock::launch<32>(on_, items, body);
    u32 error = 0;
    error_.read({&error, 1});
    if (error != 0) penstock::throw_os_error("read", file_.path, static_cast<int>(error), "leave the file as it is meanwhile");
  }

  u64 filter(u64 first, u64 items) {
    std::vector<u64> counts(3);  // rows, those without a number, the first problem
    for (;;) {
      counts_.write(std::vector<u64>{0, 0, ~u64{0}});
      launch(items, parse_parts{parts_from(first), wanted_, per_part_.data(), rows_.data(), rows_.size(), counts_.data(),
                                counts_.data() + 1, counts_.data() + 2});
      counts_.read(counts);
      file_.check_unchanged();
      if (counts[0] <= rows_.size()) break;
      rows_ = make<row_range>(counts[0]);
    }
    std::vector<row_range> rows(rows_.size());
    rows_.read(rows);
    rows.resize(counts[0]);
    std::sort(rows.begin(), rows.end(), [](row_range a, row_range b) { return a.begin < b.begin; });
    row_range run{};  // adjacent rows are printed at once
    for (row_range row : rows) {
      if (row.begin >= counts[2] >> 3) break;
      if (row.begin != run.end) file_.print(std::exchange(run, {row.begin, row.begin}));
      run.end = row.end;
    }
    file_.print(run);
    if (counts[2] != ~u64{0}) report(file_, counts[2]);
    return counts[1];
  }

  penstock::executor& on_;
  host_file& file_;
  u64 first_;
  condition wanted_;
  std::filesystem::path path_;
  penstock::folder folder_;
  penstock::buffer<char> name_, windows_;
  penstock::buffer<u32> error_, per_part_;
  penstock::buffer<u64> counts_;
  penstock::buffer<row_range> rows_;
};

int main(int count, char** words) {
  if (count != 4 && count != 5) {
    std::fprintf(stderr, "usage: csv_filter FILE.csv COLUMN MIN [MAX]\n");
    return 2;
  }
  try {
    const decimal low = read_number(words[3]), high = count == 5 ? read_number(words[4]) : decimal{};
    if (!std::filesystem::is_regular_file(words[1])) fail(std::string(words[1]) + ": there is no such file: name a CSV file");
    host_file file{words[1]};
    const csv_header header = read_header(file);
    const u32 column = find_column(file, header, words[2]);
    auto on = penstock::open_executor("auto");
    csv_filter filter(*on, file, header.end, {column, static_cast<u32>(header.names.size()), low, high, count == 5});
    if (const u64 rows = filter.run(); rows != 0) {
      std::fprintf(stderr, "csv_filter: %llu rows have no number in column %s, and do not match\n",
                   static_cast<unsigned long long>(rows), words[2]);
    }
    return 0;
  } catch (std::exception const& wrong) {
    std::fprintf(stderr, "csv_filter: %s\n", wrong.what());
    return 2;
  }
}
