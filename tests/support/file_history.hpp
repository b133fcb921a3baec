// Random histories of one group's files, and what POSIX says about each step: opens with any flags, reads, writes, appends,
// maps, truncations, syncs, renames, unlinks and closes through one of two folders (two processes), and what the host does to
// the files that nobody has open. The steps are data, so that a kernel can be given them (file_history_body.hpp).
//
// A file is open through one folder at a time, and the host changes only those that are not: what others store into an open
// file is not promised to be seen (docs/FILES.md).
#pragma once

#include "device/file_history_body.hpp"

#include <array>
#include <string>
#include <vector>

namespace penstock::test {

class file_history {
 public:
  static constexpr u32 folders = 2, names = 3;

  /// `prefix`: of the names that no other history has. `line_bytes`: of the cache.
  file_history(std::string const& root, u32 prefix, u64 seed, u64 line_bytes)
      : root_(root), prefix_(prefix), seed_(seed), line_bytes_(line_bytes) {
    names_.fill(none);
  }

  /// The next steps through a folder; what reads are to give is put behind `expected`. `closes`: the last ones close all that
  /// is open there.
  std::vector<history_step> next(u32 folder, u32 count, std::vector<char>& expected, bool closes);
  /// Changes files that are not open. Throws where the host does not do it.
  void change_on_host();
  /// What files that are not open hold is what the host finds. Else a sentence.
  std::string compare_with_host() const;

  u64 host_changes() const { return host_changes_; }

 private:
  static constexpr u32 none = ~0u;
  static constexpr u64 max_bytes = 12000, max_count = 1500;

  struct inode {
    std::string content;
    std::array<u32, folders> opens{}, generation{};
    bool is_open() const { return opens[0] + opens[1] != 0; }
  };
  struct handle {
    u32 file = none, flags = 0, generation = 0;
    bool open = false;
  };

  u64 draw() { return random_word(seed_, prefix_, drawn_++); }
  u64 draw(u64 bound) { return draw() % bound; }
  history_name name_of(u32 n) const;
  std::string path_of(u32 n) const;
  bool is_others(u32 folder, u32 n) const { return names_[n] != none && files_[names_[n]].opens[1 - folder] != 0; }

  u32 add_file();
  bool draw_step(u32 folder, history_step& s, std::string& reads);
  bool draw_open(u32 folder, history_step& s);
  bool draw_use(u32 folder, history_step& s, std::string& reads);
  void draw_access(inode& file, handle const& with, history_step& s, std::string& reads);
  bool draw_name(u32 folder, history_step& s);
  void close(u32 folder, u32 h, history_step& s);
  std::string bytes_from(u64 seed, u64 count) const;
  void store(inode& file, u64 at, std::string const& bytes);

  std::string root_;
  u32 prefix_;
  u64 seed_, line_bytes_, drawn_ = 0, host_changes_ = 0;
  std::vector<inode> files_;
  std::array<u32, names> names_{};
  std::array<std::array<handle, history_step::handles>, folders> handles_{};
};

}  // namespace penstock::test
