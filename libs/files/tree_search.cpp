#include "libs/files/tree_search.hpp"

#include "libs/files/search_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace penstock::files {
namespace {

constexpr u64 part_bytes = u64{8} << 20;  // of a file, for a group
constexpr u64 folders_at_once = 1024, parts_at_once = 16384;
constexpr u64 files_at_first = 256;  // twice as many each time: what is found first is there soon

/// Names on the host.
struct tree_names {
  std::string text;
  std::vector<name_place> names;

  void add(std::string_view name, bool is_folder) {
    names.push_back({text.size(), static_cast<u32>(name.size()), is_folder ? 1u : 0u});
    text += name;
  }
  std::string_view operator[](u64 k) const { return std::string_view(text).substr(names[k].begin, names[k].bytes); }
};

class tree_search {
 public:
  tree_search(std::string const& root, std::string const& pattern, search_options const& options)
      : options_(options), root_(root), on_(open_on(options)), folder_(*on_, root, folder_options_of(*on_, options)),
        text_used_(on_->memory(), memory_kind::local, 1), names_used_(on_->memory(), memory_kind::local, 1),
        matches_used_(on_->memory(), memory_kind::local, 1) {
    pattern_.bytes = static_cast<u32>(pattern.size());
    pattern_.ignore_case = options.ignore_case;
    for (u32 k = 0; k < pattern_.bytes; ++k) {
      const u8 c = static_cast<u8>(pattern[k]);
      pattern_.text[k] = static_cast<char>(options.ignore_case ? lower_case(c) : c);
    }
  }

  search_result run() {
    const u64 begun = now_ns();
    list_tree();
    result_.listing_seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    search_files();
    result_.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    result_.executor = on_->kind() == executor_kind::cuda ? "cuda" : "cpu";
    result_.device = on_->device();
    const auto stats = folder_.cache().stats(0);
    result_.hits = stats.hits;
    result_.misses = stats.misses;
    result_.bytes_moved = stats.bytes_moved;
    result_.host_calls = folder_.host_calls();
    std::sort(result_.files.begin(), result_.files.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  static std::unique_ptr<executor> open_on(search_options const& options) {
    return open_executor(options.executor, options.threads, has_kernels);
  }
  static folder_options folder_options_of(executor const& on, search_options const& options) {
    folder_options how;
    const u64 usual = on.kind() == executor_kind::cuda ? u64{1} << 30 : u64{64} << 20;
    how.cache.bytes = options.cache_bytes != 0 ? options.cache_bytes : usual;
    how.cache.line_bytes = options.line_bytes;
    return how;
  }

  void report(std::string const& what, u64 done, u64 total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  // Level by level, from the folder itself.
  void list_tree() {
    tree_names level;
    level.add("", true);
    while (!level.names.empty()) {
      tree_names next;
      for (u64 first = 0; first < level.names.size(); first += folders_at_once) {
        report("listing " + root_, result_.folders, result_.folders + level.names.size());
        list(level, first, std::min<u64>(level.names.size() - first, folders_at_once), next);
      }
      result_.folders += level.names.size();
      level = std::move(next);
    }
  }

  void list(tree_names const& level, u64 first, u64 count, tree_names& next) {
    memory_resource& memory = on_->memory();
    constexpr auto local = memory_kind::local;
    buffer<char> text(memory, local, std::max<u64>(level.text.size(), 1)),
        entries(memory, local, count * folder_view::max_entry_bytes);
    buffer<name_place> folders(memory, local, count);
    buffer<u32> errors(memory, local, count);
    text.write({level.text.data(), level.text.size()});
    folders.write({level.names.data() + first, count});
    for (u64 text_room = 1 << 20, names_room = 1 << 15;;) {
      buffer<char> found_text(memory, local, text_room);
      buffer<name_place> found(memory, local, names_room);
      put(text_used_, 0);
      put(names_used_, 0);
      files::run(*on_, count,
                 list_folders{folder_.view(),
                              text.data(),
                              folders.data(),
                              entries.data(),
                              {found_text.data(), found.data(), text_room, names_room, text_used_.data(), names_used_.data()},
                              errors.data()});
      const u64 text_used = get(text_used_), names_used = get(names_used_);
      if (text_used <= text_room && names_used <= names_room) {
        take_listed(found_text, text_used, found, names_used, next);
        break;
      }
      text_room = text_used + text_used / 4;  // others may add names meanwhile
      names_room = names_used + names_used / 4;
    }
    std::vector<u32> wrong(count);
    errors.read(wrong);
    for (u64 k = 0; k < count; ++k) {
      if (wrong[k] == 0) continue;
      searched_file& file = result_.files.emplace_back();
      file.path = level[first + k].empty() ? "." : std::string(level[first + k]);
      file.error = static_cast<int>(wrong[k]);
    }
  }

  void take_listed(buffer<char> const& text, u64 text_used, buffer<name_place> const& names, u64 names_used, tree_names& next) {
    std::vector<char> all(text.size());
    std::vector<name_place> found(names.size());
    text.read(all);
    names.read(found);
    found.resize(names_used);
    const std::string_view whole(all.data(), text_used);
    for (name_place const& each : found) {
      const std::string_view name = whole.substr(each.begin, each.bytes);
      if (each.is_folder != 0) {
        next.add(name, true);
      } else {
        names_.add(name, false);
      }
    }
  }

  void search_files() {
    std::vector<name_place>& names = names_.names;
    std::sort(names.begin(), names.end(), [&](name_place const& a, name_place const& b) {
      return names_.text.compare(a.begin, a.bytes, names_.text, b.begin, b.bytes) < 0;
    });
    const u64 first_file = result_.files.size();
    result_.files.resize(first_file + names.size());
    files_ = {result_.files.data() + first_file, names.size()};
    text_ = {on_->memory(), memory_kind::local, std::max<u64>(names_.text.size(), 1)};
    text_.write({names_.text.data(), names_.text.size()});
    newlines_.resize(names.size());
    for (u64 first = 0, at_once = files_at_first; first < names.size(); at_once = std::min(2 * at_once, parts_at_once)) {
      const u64 count = std::min<u64>(names.size() - first, at_once);
      search_some(first, count);
      if (options_.searched) options_.searched(files_.subspan(first, count));
      first += count;
    }
  }

  void search_some(u64 first, u64 count) {
    report_searching(first);
    std::vector<file_part> parts;
    std::vector<u64> owners;
    for (u64 k = first; k < first + count; ++k) {
      parts.push_back({names_.names[k], 0, part_bytes});
      owners.push_back(k);
    }
    search(parts, owners);
    // What follows of large files.
    parts.clear();
    owners.clear();
    for (u64 k = first; k < first + count; ++k) {
      searched_file const& file = files_[k];
      for (u64 at = part_bytes; at < file.bytes && !file.binary && file.error == 0; at += part_bytes) {
        parts.push_back({names_.names[k], at, at + part_bytes});
        owners.push_back(k);
      }
    }
    for (u64 done = 0; done < parts.size(); done += parts_at_once) {
      report_searching(owners[done]);
      const u64 some = std::min<u64>(parts.size() - done, parts_at_once);
      search({parts.data() + done, some}, {owners.data() + done, some});
    }
    collect_lines();
  }

  void report_searching(u64 file) const { report("searching " + root_, file, files_.size()); }

  void search(std::span<file_part const> parts, std::span<u64 const> owners) {
    const u64 begun = now_ns();
    memory_resource& memory = on_->memory();
    constexpr auto local = memory_kind::local;
    buffer<file_part> items(memory, local, parts.size());
    buffer<part_result> results(memory, local, parts.size());
    buffer<char> windows(memory, local, parts.size() * search_parts::window_bytes);
    items.write(parts);
    std::vector<match_place> found;
    for (u64 room = u64{1} << 16;;) {
      buffer<match_place> matches(memory, local, room);
      put(matches_used_, 0);
      files::run(*on_, parts.size(),
                 search_parts{folder_.view(), text_.data(), items.data(), results.data(), pattern_, windows.data(),
                              matches.data(), room, matches_used_.data()});
      const u64 used = get(matches_used_);
      if (used <= room) {
        found.resize(room);
        matches.read(found);
        found.resize(used);
        break;
      }
      room = used + used / 4;
    }
    std::vector<part_result> done(parts.size());
    results.read(done);
    take_matches(parts, owners, done, found);
    result_.searching_seconds += static_cast<double>(now_ns() - begun) * 1e-9;
  }

  void take_matches(std::span<file_part const> parts, std::span<u64 const> owners, std::vector<part_result> const& done,
                    std::vector<match_place>& found) {
    std::sort(found.begin(), found.end(), [](match_place const& a, match_place const& b) {
      return a.part != b.part ? a.part < b.part : a.offset < b.offset;
    });
    u64 next = 0;
    for (u64 k = 0; k < parts.size(); ++k) {
      searched_file& file = files_[owners[k]];
      part_result const& part = done[k];
      if (part.error != 0) file.error = static_cast<int>(part.error);
      if (parts[k].first == 0) {
        file.path = std::string(names_[owners[k]]);
        file.bytes = part.size;
      }
      file.binary |= part.binary != 0;
      result_.bytes += part.bytes;
      for (; next < found.size() && found[next].part == k; ++next) {
        // A line that has several matches is one. The text follows when all parts are there.
        const u64 number = newlines_[owners[k]] + found[next].newlines + 1;
        if (!file.lines.empty() && file.lines.back().number == number) continue;
        file.lines.push_back({number, {}});
        offsets_.push_back({owners[k], file.lines.size() - 1, found[next].offset});
      }
      newlines_[owners[k]] += part.newlines;
    }
  }

  // Of lines that were found alone; the host reads them where the threads have just read them.
  void collect_lines() {
    std::stable_sort(offsets_.begin(), offsets_.end(),
                     [](line_place const& a, line_place const& b) { return a.file < b.file; });
    int open_file = -1;
    u64 opened = ~u64{0};
    for (line_place const& place : offsets_) {
      if (files_[place.file].binary) continue;
      if (place.file != opened) {
        if (open_file >= 0) close(open_file);
        opened = place.file;
        open_file = folder_.open_to_read(files_[opened].path);
        report("reading lines", opened, files_.size());
      }
      if (open_file < 0 || !has_pattern(open_file, place.offset)) {
        files_[opened].error = ESTALE;  // it was changed, or is another one by now
      } else if (files_[opened].error == 0) {
        files_[opened].lines[place.line].text = line_at(open_file, place.offset);
      }
    }
    if (open_file >= 0) close(open_file);
    for (line_place const& place : offsets_) {
      searched_file& file = files_[place.file];
      if (file.binary || file.error == ESTALE) file.lines.clear();
    }
    offsets_.clear();
  }

  bool has_pattern(int file, u64 offset) const {
    char there[max_pattern_bytes];
    const auto got = pread(file, there, pattern_.bytes, static_cast<off_t>(offset));
    return got == static_cast<ssize_t>(pattern_.bytes) && pattern_.is_at(there);
  }

  /// The line around a match, as much of it as max_line_bytes before and behind where it begins.
  static std::string line_at(int file, u64 offset) {
    constexpr u64 step = 65536;
    std::vector<std::string> before;  // the nearest first
    std::string line, room(step, '\0');
    for (u64 end = offset, first = offset > max_line_bytes ? offset - max_line_bytes : 0; end > first;) {
      const u64 begin = end - first > step ? end - step : first;
      const auto got = pread(file, room.data(), end - begin, static_cast<off_t>(begin));
      if (got <= 0) break;
      const std::string_view piece(room.data(), static_cast<u64>(got));
      const u64 newline = piece.rfind('\n');
      before.emplace_back(newline == std::string_view::npos ? piece : piece.substr(newline + 1));
      if (newline != std::string_view::npos) break;
      end = begin;
    }
    for (auto each = before.rbegin(); each != before.rend(); ++each) line += *each;
    for (u64 at = offset; at < offset + max_line_bytes;) {
      const auto got = pread(file, room.data(), std::min(step, offset + max_line_bytes - at), static_cast<off_t>(at));
      if (got <= 0) break;
      const std::string_view piece(room.data(), static_cast<u64>(got));
      const u64 newline = piece.find('\n');
      line += piece.substr(0, newline);
      if (newline != std::string_view::npos) break;
      at += piece.size();
    }
    return line;
  }

  static void put(buffer<u64>& word, u64 value) { word.write({&value, 1}); }
  static u64 get(buffer<u64> const& word) {
    u64 value = 0;
    word.read({&value, 1});
    return value;
  }

  struct line_place {
    u64 file = 0, line = 0, offset = 0;
  };

  search_options const& options_;
  std::string root_;
  pattern_text pattern_;
  std::unique_ptr<executor> on_;
  folder folder_;
  buffer<u64> text_used_, names_used_, matches_used_;
  buffer<char> text_;  ///< of the names of files
  tree_names names_;   ///< of files
  std::span<searched_file> files_;
  std::vector<u64> newlines_;        ///< [files] in the parts before
  std::vector<line_place> offsets_;  ///< of lines whose text is not there yet
  search_result result_;
};

}  // namespace

search_result search_tree(std::string const& folder, std::string const& pattern, search_options const& options) {
  if (pattern.empty() || pattern.size() > max_pattern_bytes) {
    throw_bad_input(
        "search", folder,
        "the pattern has " + std::to_string(pattern.size()) + " bytes: give 1 to " + std::to_string(max_pattern_bytes));
  }
  if (pattern.find('\n') != std::string::npos) {
    throw_bad_input("search", folder, "the pattern has a line end: lines are searched one by one");
  }
  return tree_search(folder, pattern, options).run();
}

}  // namespace penstock::files
