#include "libs/files/mounted_folder.hpp"

#include "penstock/executor/kept_for_graphs.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::files {

using kernels::folder_answer;
using kernels::folder_op;
using kernels::folder_request;

namespace {

constexpr u64 data_bytes = u64{1} << 20;  // that a call moves

u64 cache_bytes_of(executor const& on, u64 wanted) {
  if (wanted != 0) return wanted;
  return on.kind() == executor_kind::cuda ? u64{1} << 30 : u64{64} << 20;
}

folder_options options_of(executor const& on, mount_options const& options) {
  folder_options how;
  how.cache.bytes = cache_bytes_of(on, options.cache_bytes);
  how.cache.line_bytes = options.line_bytes;
  how.writable = options.writable;
  how.max_files = options.max_files;
  return how;
}

}  // namespace

mounted_folder::mounted_folder(std::string const& root, mount_options const& options)
    : on_((drop_kept(), open_executor(options.executor, options.threads, has_kernels))),
      folder_(*on_, root, options_of(*on_, options)), cache_bytes_(cache_bytes_of(*on_, options.cache_bytes)),
      line_bytes_(options.line_bytes), paths_(on_->memory(), memory_kind::local, 2 * max_path_bytes),
      data_(on_->memory(), memory_kind::local, data_bytes), answer_(on_->memory(), memory_kind::local, 1),
      view_(on_->memory(), memory_kind::local, 1) {
  view_.write({&folder_.view(), 1});
}

folder_answer mounted_folder::call(folder_request asked, std::string const& path, std::string const& other) {
  const std::lock_guard lock(mutex_);
  return call_locked(asked, path, other);
}

folder_answer mounted_folder::call_locked(folder_request asked, std::string const& path, std::string const& other) {
  if (path.size() >= max_path_bytes || other.size() >= max_path_bytes) return {.error = ENAMETOOLONG};
  asked.path = paths_.data();
  asked.other = paths_.data() + max_path_bytes;
  asked.memory = data_.data();
  asked.path_bytes = static_cast<u32>(path.size());
  asked.other_bytes = static_cast<u32>(other.size());
  if (!path.empty() || !other.empty()) {
    std::string both(2 * max_path_bytes, '\0');
    path.copy(both.data(), path.size());
    other.copy(both.data() + max_path_bytes, other.size());
    paths_.write(both);
  }
  run(*on_, 1, make_call{folder_.view(), asked, answer_.data()});
  folder_answer given;
  answer_.read({&given, 1});
  return given;
}

file_result mounted_folder::pread(file_descriptor const& file, std::span<char> to, u64 offset) {
  const std::lock_guard lock(mutex_);
  file_result all;
  while (all.value < to.size()) {
    const u64 count = std::min<u64>(to.size() - all.value, data_bytes);
    const folder_answer got = call_locked(
        {.op = folder_op::pread, .file = kernels::words_of(file), .offset = offset + all.value, .count = count}, "", "");
    if (got.error != 0) return {all.value, got.error};
    on_->memory().read(to.data() + all.value, data_.data(), got.value);
    all.value += got.value;
    if (got.value < count) break;
  }
  return all;
}

file_result mounted_folder::pwrite(file_descriptor const& file, std::span<char const> from, u64 offset) {
  const std::lock_guard lock(mutex_);
  file_result all;
  while (all.value < from.size()) {
    const u64 count = std::min<u64>(from.size() - all.value, data_bytes);
    on_->memory().write(data_.data(), from.data() + all.value, count);
    const folder_answer got = call_locked(
        {.op = folder_op::pwrite, .file = kernels::words_of(file), .offset = offset + all.value, .count = count}, "", "");
    if (got.error != 0) return {all.value, got.error};
    all.value += got.value;
  }
  return all;
}

std::vector<std::pair<std::string, u32>> mounted_folder::list(std::string const& path, u32& error) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, u32>> names;
  std::vector<char> entries(folder_view::max_entry_bytes);
  for (u64 cursor = 0;;) {
    const folder_answer got = call_locked({.op = folder_op::list, .offset = cursor}, path, "");
    error = got.error;
    if (got.error != 0 || got.value == 0) return names;
    on_->memory().read(entries.data(), data_.data(), got.value);
    for (u64 at = 0; at < got.value;) {
      folder_entry entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      names.emplace_back(std::string(entries.data() + at + sizeof entry, entry.name_bytes), entry.kind);
      at += entry.bytes;
    }
    cursor = got.time;
  }
}

std::vector<staged_file> mounted_folder::stage(std::vector<std::string> const& paths) {
  std::string text;
  std::vector<name_place> names;
  for (std::string const& path : paths) {
    names.push_back({text.size(), static_cast<u32>(path.size()), 0});
    text += path;
  }
  std::vector<staged_file> staged(paths.size());
  if (paths.empty()) return staged;
  memory_resource& memory = on_->memory();
  buffer<char> text_there(memory, memory_kind::local, std::max<u64>(text.size(), 1));
  buffer<name_place> names_there(memory, memory_kind::local, names.size());
  buffer<staged_file> staged_there(memory, memory_kind::local, names.size());
  text_there.write(text);
  names_there.write(names);
  run(*on_, names.size(), stage_files{folder_.view(), text_there.data(), names_there.data(), staged_there.data()});
  staged_there.read(staged);
  return staged;
}

void mounted_folder::flush() {
  const std::lock_guard lock(mutex_);
  folder_.flush();
}

mount_facts mounted_folder::facts() const {
  mount_facts found;
  found.executor = on_->kind() == executor_kind::cuda ? "cuda" : "cpu";
  found.device = on_->device();
  found.cache_bytes = cache_bytes_;
  found.line_bytes = line_bytes_;
  found.open_files = folder_.open_files();
  found.versions = folder_.versions();
  found.host_calls = folder_.host_calls();
  found.cache = folder_.cache().stats(0);
  return found;
}

}  // namespace penstock::files
