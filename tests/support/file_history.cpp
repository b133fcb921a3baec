#include "support/file_history.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace penstock::test {
namespace {

/// A file that the host opens, and what it does to it.
class host_file {
 public:
  host_file(std::string const& path, int flags) : file_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::runtime_error("cannot open " + path);
  }
  host_file(host_file const&) = delete;
  host_file& operator=(host_file const&) = delete;
  ~host_file() { close(file_); }

  void write(std::string const& bytes, u64 at) const {
    if (pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at)) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("cannot write");
    }
  }
  void cut(u64 bytes) const {
    if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("cannot truncate");
  }

 private:
  int file_;
};

}  // namespace

history_name file_history::name_of(u32 n) const {
  history_name name;
  name.bytes = static_cast<u32>(std::snprintf(name.text, sizeof name.text, "h%u-%u", prefix_, n));
  return name;
}

std::string file_history::path_of(u32 n) const { return root_ + "/" + name_of(n).text; }

std::string file_history::bytes_from(u64 seed, u64 count) const {
  std::string bytes(count, '\0');
  for (u64 i = 0; i < count; ++i) bytes[i] = history_byte(seed, i);
  return bytes;
}

void file_history::store(inode& file, u64 at, std::string const& bytes) {
  if (file.content.size() < at + bytes.size()) file.content.resize(at + bytes.size(), '\0');
  file.content.replace(at, bytes.size(), bytes);
}

u32 file_history::add_file() {
  for (u32 f = 0; f < files_.size(); ++f) {
    if (files_[f].is_open() || std::count(names_.begin(), names_.end(), f) != 0) continue;
    files_[f].content.clear();  // its generations go on, so what was a descriptor of it is none of this one
    return f;
  }
  files_.emplace_back();
  return static_cast<u32>(files_.size() - 1);
}

std::vector<history_step> file_history::next(u32 folder, u32 count, std::vector<char>& expected, bool closes) {
  std::vector<history_step> steps;
  const auto add = [&](history_step s, std::string const& reads) {
    s.expected = expected.size();
    expected.insert(expected.end(), reads.begin(), reads.end());
    steps.push_back(s);
  };
  while (steps.size() < count) {
    history_step s;
    std::string reads;
    if (draw_step(folder, s, reads)) add(s, reads);
  }
  for (u32 h = 0; closes && h < history_step::handles; ++h) {
    history_step s;
    if (!handles_[folder][h].open) continue;
    close(folder, h, s);
    add(s, "");
  }
  return steps;
}

bool file_history::draw_step(u32 folder, history_step& s, std::string& reads) {
  switch (draw(16)) {
    case 0:
    case 1:
    case 2:
    case 3: return draw_open(folder, s);
    case 4: return draw_name(folder, s);
    default: return draw_use(folder, s, reads);
  }
}

bool file_history::draw_open(u32 folder, history_step& s) {
  const u32 n = static_cast<u32>(draw(names));
  s.op = history_op::open;
  s.name = name_of(n);
  s.handle = static_cast<u32>(draw(history_step::handles));
  handle& with = handles_[folder][s.handle];
  if (with.open || is_others(folder, n)) return false;
  using namespace file_flag;
  s.flags = draw(32) == 0 ? 0 : 1 + static_cast<u32>(draw(3));  // read, write, or both
  if (draw(2) == 0) s.flags |= create;
  if (draw(4) == 0) s.flags |= truncate;
  if (draw(4) == 0) s.flags |= append;
  if (draw(8) == 0) s.flags |= exclusive;
  u32& file = names_[n];
  if (!are_open_flags_valid(s.flags)) {
    s.error = EINVAL;
  } else if (file == none && (s.flags & create) == 0) {
    s.error = ENOENT;
  } else if (file != none && (s.flags & exclusive) != 0) {
    s.error = EEXIST;
  }
  if (s.error != 0) return true;
  if (file == none) file = add_file();
  inode& opened = files_[file];
  if ((s.flags & truncate) != 0) opened.content.clear();
  if (opened.opens[folder]++ == 0) ++opened.generation[folder];
  with = {file, s.flags, opened.generation[folder], true};
  return true;
}

void file_history::close(u32 folder, u32 h, history_step& s) {
  s.op = history_op::close;
  s.handle = h;
  handle& with = handles_[folder][h];
  with.open = false;
  --files_[with.file].opens[folder];
}

bool file_history::draw_use(u32 folder, history_step& s, std::string& reads) {
  static constexpr history_op ops[] = {history_op::close,    history_op::pread,  history_op::pread,  history_op::pread,
                                       history_op::pwrite,   history_op::pwrite, history_op::pwrite, history_op::sync,
                                       history_op::truncate, history_op::map,    history_op::map,    history_op::size_of};
  s.op = ops[draw(std::size(ops))];
  s.handle = static_cast<u32>(draw(history_step::handles));
  s.offset = draw(8) == 0 ? draw(max_bytes) : draw(max_bytes / 4);
  s.count = draw(4) == 0 ? draw(max_count) : draw(64);
  s.seed = draw();
  s.flags = 1 + static_cast<u32>(draw(3));
  handle const& with = handles_[folder][s.handle];
  if (with.file == none) {  // a descriptor that never was
    s.error = EBADF;
    return true;
  }
  inode& file = files_[with.file];
  if (!with.open) {
    // As long as another descriptor of the file is open, it means that one.
    if (file.opens[folder] != 0 && file.generation[folder] == with.generation) return false;
    s.error = EBADF;
    return true;
  }
  if (s.op == history_op::pwrite && file.content.size() > 4 * max_bytes) s.op = history_op::truncate;
  if (s.op == history_op::close) {
    close(folder, s.handle, s);
  } else {
    draw_access(file, with, s, reads);
  }
  return true;
}

void file_history::draw_access(inode& file, handle const& with, history_step& s, std::string& reads) {
  const bool may_read = (with.flags & file_flag::read) != 0, may_write = (with.flags & file_flag::write) != 0;
  const u64 size = file.content.size(), there = s.offset < size ? std::min(s.count, size - s.offset) : 0;
  switch (s.op) {
    case history_op::pread:
      if (!may_read) break;
      s.value = there;
      if (there != 0) reads = file.content.substr(s.offset, there);
      return;
    case history_op::pwrite:
      if (!may_write) break;
      s.value = s.count;
      if (s.count != 0) store(file, (with.flags & file_flag::append) != 0 ? size : s.offset, bytes_from(s.seed, s.count));
      return;
    case history_op::truncate:
      if (!may_write) break;
      file.content.resize(s.offset, '\0');
      return;
    case history_op::map:
      if ((s.flags & with.flags) != s.flags) break;
      s.value = std::min(there, line_bytes_ - s.offset % line_bytes_);
      if (there == 0) s.value = 0;
      if (s.value != 0) reads = file.content.substr(s.offset, s.value);
      if ((s.flags & file_flag::write) != 0 && s.value != 0) store(file, s.offset, bytes_from(s.seed, s.value));
      return;
    case history_op::size_of: s.value = size; return;
    default: return;
  }
  s.error = EBADF;
}

bool file_history::draw_name(u32 folder, history_step& s) {
  const u32 n = static_cast<u32>(draw(names)), other = static_cast<u32>(draw(names));
  if (is_others(folder, n) || is_others(folder, other)) return false;
  s.name = name_of(n);
  s.other = name_of(other);
  s.op = draw(4) == 0 ? history_op::unlink : draw(2) == 0 ? history_op::rename : history_op::stat;
  if (names_[n] == none) {
    s.error = ENOENT;
  } else if (s.op == history_op::stat) {
    s.value = files_[names_[n]].content.size();
  } else if (s.op == history_op::unlink) {
    names_[n] = none;
  } else if (n != other) {
    names_[other] = std::exchange(names_[n], none);
  }
  return true;
}

void file_history::change_on_host() {
  const u32 n = static_cast<u32>(draw(names));
  const bool exists = names_[n] != none;
  if (exists && files_[names_[n]].is_open()) return;
  ++host_changes_;
  const u64 at = draw(max_bytes / 4), seed = draw();
  const std::string bytes = bytes_from(seed, (draw(4) == 0 ? draw(max_count) : draw(64)) + 1), path = path_of(n);
  const u64 how = draw(6);
  if (!exists || how == 0) {  // a file of its own takes the name
    names_[n] = add_file();
    files_[names_[n]].content = bytes;
    host_file(path + "~", O_WRONLY | O_CREAT | O_TRUNC).write(bytes, 0);
    std::filesystem::rename(path + "~", path);
    return;
  }
  inode& file = files_[names_[n]];
  if (how == 1) {
    names_[n] = none;
    std::filesystem::remove(path);
  } else if (how == 2) {
    file.content.resize(at, '\0');
    host_file(path, O_WRONLY).cut(at);
  } else if (how == 3 && !file.content.empty()) {  // other bytes, the same size
    const u64 begin = at % file.content.size(), count = std::min(bytes.size(), file.content.size() - begin);
    store(file, begin, bytes.substr(0, count));
    host_file(path, O_WRONLY).write(bytes.substr(0, count), begin);
  } else {
    store(file, at, bytes);
    host_file(path, O_WRONLY).write(bytes, at);
  }
}

std::string file_history::compare_with_host() const {
  for (u32 n = 0; n < names; ++n) {
    std::ifstream host(path_of(n), std::ios::binary);
    const bool exists = names_[n] != none;
    if (exists && files_[names_[n]].is_open()) continue;
    if (exists != host.is_open()) return path_of(n) + (exists ? " is not there" : " is there");
    if (!exists) continue;
    const std::string found((std::istreambuf_iterator<char>(host)), {});
    std::string const& expected = files_[names_[n]].content;
    if (found.size() != expected.size()) {
      return path_of(n) + " has " + std::to_string(found.size()) + " bytes instead of " + std::to_string(expected.size());
    }
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    if (found != expected) return path_of(n) + " has another byte at " + std::to_string(at);
  }
  return "";
}

}  // namespace penstock::test
