// The host's half of file_search_body: files with lines and a pattern in them, and what is to be found.
#pragma once

#include "device/file_search_body.hpp"
#include "penstock/runtime/folder.hpp"
#include "support/scratch_files.hpp"

#include <fstream>
#include <set>

namespace penstock::test {

class file_search_fixture {
 public:
  static constexpr u32 files_count = 8, line_bytes = 512;
  static constexpr u64 matches_room = 1 << 18;

  file_search_fixture(executor& on, u32 groups, std::string const& pattern, bool ignore_case)
      : on_(on), pattern_(pattern), ignore_case_(ignore_case) {
    make_files();
    folder_options options;
    options.cache.bytes = 1 << 20;
    options.cache.line_bytes = line_bytes;
    options.max_calls = 8;
    folder_ = std::make_unique<folder>(on, scratch_.path(), options);
    constexpr auto local = memory_kind::local;
    text_ = {on.memory(), local, names_.size()};
    text_.write({names_.data(), names_.size()});
    parts_ = {on.memory(), local, groups};
    results_ = {on.memory(), local, groups};
    windows_ = {on.memory(), local, u64{groups} * files::search_parts::window_bytes};
    matches_ = {on.memory(), local, matches_room};
    used_ = {on.memory(), local, 1};
    ran_ = {on.memory(), local, groups};
  }

  file_search_body body() {
    file_search_body made{};
    made.search.folder = folder_->view();
    made.search.text = text_.data();
    made.search.parts = parts_.data();
    made.search.results = results_.data();
    made.search.windows = windows_.data();
    made.search.matches = matches_.data();
    made.search.matches_room = matches_room;
    made.search.matches_used = used_.data();
    made.search.pattern.bytes = static_cast<u32>(pattern_.size());
    made.search.pattern.ignore_case = ignore_case_;
    for (u32 k = 0; k < pattern_.size(); ++k) made.search.pattern.text[k] = pattern_[k];
    made.ran = ran_.data();
    return made;
  }

  /// Each group gets a file, or a part of one that begins at a line of the cache.
  void prepare(run_shape shape) {
    std::vector<files::file_part> parts(parts_.size());
    for (u32 k = 0; k < parts.size(); ++k) {
      const u64 drawn = random_word(shape.seed, 1, k);
      const u32 file = static_cast<u32>(drawn % files_count);
      const u64 lines = contents_[file].size() / line_bytes + 1, first = drawn / 256 % 3 == 0 ? drawn / 1024 % lines : 0;
      const u64 last = drawn / 4096 % 3 == 0 ? first + drawn / 65536 % (lines - first + 1) : lines;
      parts[k] = {{file, 1, 0}, first * line_bytes, last * line_bytes};
    }
    parts_.write(parts);
    const std::vector<u32> none(ran_.size());
    ran_.write(none);
    const u64 zero = 0;
    used_.write({&zero, 1});
  }

  void verify(check_report& report) const {
    std::vector<files::file_part> parts(parts_.size());
    std::vector<files::part_result> results(results_.size());
    std::vector<files::match_place> matches(matches_room);
    std::vector<u32> ran(ran_.size());
    u64 used = 0;
    parts_.read(parts);
    results_.read(results);
    matches_.read(matches);
    ran_.read(ran);
    used_.read({&used, 1});
    std::set<std::tuple<u64, u64, u64>> found, expected;
    for (u64 k = 0; k < used; ++k) found.insert({matches[k].part, matches[k].offset, matches[k].newlines});
    PENSTOCK_CHECK_EQ(report, used, u64{found.size()});
    for (u64 k = 0; k < parts.size(); ++k) {
      if (ran[k] == 0) continue;
      std::string const& bytes = contents_[parts[k].name.begin];
      PENSTOCK_CHECK_EQ(report, u64{bytes.size()}, results[k].size);
      expect_of(parts[k], k, bytes, expected);
      const u64 first = std::min<u64>(parts[k].first, bytes.size()), last = std::min<u64>(parts[k].last, bytes.size());
      const u64 newlines = static_cast<u64>(
          std::count(bytes.begin() + static_cast<long>(first), bytes.begin() + static_cast<long>(std::max(first, last)), '\n'));
      PENSTOCK_CHECK_EQ(report, newlines, results[k].newlines);
    }
    PENSTOCK_CHECK_EQ(report, u64{expected.size()}, u64{found.size()});
    PENSTOCK_CHECK_EQ(report, true, expected == found);
  }

 private:
  // Lines of a few words over a small alphabet, so that much of the pattern comes up by chance, also across lines of the cache.
  void make_files() {
    for (u32 f = 0; f < files_count; ++f) {
      std::string bytes;
      const u64 length = f == 0 ? 0 : f == 1 ? line_bytes : random_word(3, f, 0) % 6000 + 1;
      for (u64 k = 0; bytes.size() < length; ++k) {
        const u64 drawn = random_word(5, f, k);
        bytes += drawn % 8 == 0 ? pattern_ : std::string(1, "abAB\nx"[drawn / 8 % 6]);
      }
      bytes.resize(length);
      const std::string name(1, static_cast<char>('A' + f));
      std::ofstream(scratch_ / name, std::ios::binary) << bytes;
      names_ += name;
      contents_.push_back(std::move(bytes));
    }
  }

  void expect_of(files::file_part const& part, u64 k, std::string const& bytes,
                 std::set<std::tuple<u64, u64, u64>>& expected) const {
    const auto at = [&](u64 i) { return ignore_case_ ? static_cast<char>(std::tolower(bytes[i])) : bytes[i]; };
    const u64 last = std::min<u64>(part.last, bytes.size());
    u64 newlines = 0;
    for (u64 i = 0; i < part.first && i < bytes.size(); ++i) newlines -= bytes[i] == '\n';
    for (u64 i = 0; i + pattern_.size() <= bytes.size(); ++i) {
      bool same = true;
      for (u64 j = 0; j < pattern_.size(); ++j) same &= at(i + j) == pattern_[j];
      // What begins before the part and ends in it is its, what ends behind it is the next one's.
      const u64 end = i + pattern_.size();
      const bool its = part.first < last && end > part.first && end <= last && (i >= part.first || part.first != 0);
      if (same && its) expected.insert({k, i, newlines});
      newlines += bytes[i] == '\n';
    }
  }

  executor& on_;
  std::string pattern_;
  bool ignore_case_;
  test_support::scratch_folder scratch_;
  std::string names_;
  std::vector<std::string> contents_;
  std::unique_ptr<folder> folder_;
  buffer<char> text_, windows_;
  buffer<files::file_part> parts_;
  buffer<files::part_result> results_;
  buffer<files::match_place> matches_;
  buffer<u64> used_;
  buffer<u32> ran_;
};

}  // namespace penstock::test
