#include "file_space.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::controllers {
namespace {

constexpr u64 growth_share = 4096;  // of the line space, that a file which may grow has at least

file_call::answer refuse(int error) {
  file_call::answer answer;
  answer.error = static_cast<u32>(error);
  return answer;
}

template <class T>
T* map_table(u64 count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace

file_space::file_space(std::string const& root, bool writable, u64 bytes, u32 max_files)
    : root_(root), names_(root), writable_(writable), bytes_(bytes / granule_bytes * granule_bytes),
      granules_(bytes / granule_bytes), ranges_(bytes / granule_bytes) {
  table_ = map_table<std::atomic<storage_namespace*>>(granules_);
  begins_ = map_table<std::atomic<u64>>(granules_);
  slots_.resize(max_files);
  for (u32 s = 0; s < max_files; ++s) free_slots_.push_back(s);
}

file_space::~file_space() {
  munmap(static_cast<void*>(table_), granules_ * sizeof *table_);
  munmap(static_cast<void*>(begins_), granules_ * sizeof *begins_);
}

storage_namespace* file_space::find(u64 offset, u64& within) const {
  const u64 granule = offset / granule_bytes;
  storage_namespace* const media = table_[granule].load(std::memory_order_seq_cst);
  within = offset - begins_[granule].load(relaxed);
  return media;
}

std::shared_ptr<pass_counter> file_space::add_queue() {
  const std::lock_guard lock(mutex_);
  return queues_.emplace_back(std::make_shared<pass_counter>());
}

void file_space::answer(file_call& call) {
  const file_call::request asked = call.asked;
  const auto text = [](char const* field, u32 bytes) { return std::string(field, std::min(bytes, max_path_bytes - 1)); };
  const std::string path = text(call.path, asked.path_bytes);
  outcome given;
  // A name with a zero inside would be another one to the kernel.
  const bool cut = path.find('\0') != std::string::npos;
  switch (static_cast<file_op>(asked.op)) {
    case file_op::open: given = cut ? refuse(EINVAL) : open(call, path); break;
    case file_op::close: given = close(asked); break;
    case file_op::sync: given = sync(asked); break;
    case file_op::truncate: given = truncate(asked); break;
    case file_op::stat: given = cut ? refuse(EINVAL) : stat(path); break;
    case file_op::unlink: given = cut ? refuse(EINVAL) : unlink(path); break;
    case file_op::rename: given = cut ? refuse(EINVAL) : rename(path, text(call.other, asked.other_bytes)); break;
    case file_op::read_folder: given = cut ? refuse(EINVAL) : read_folder(path, asked.number, call); break;
    case file_op::room_made: given = room_made(asked); break;
    default: given = refuse(ENOSYS); break;
  }
  call.given = given;
  calls_.fetch_add(1, std::memory_order_relaxed);
}

void file_space::finalize_sizes(std::span<u64 const> sizes) {
  const std::lock_guard lock(mutex_);
  for (u64 s = 0; s < slots_.size(); ++s) {
    version* const v = slots_[s].owner;
    if (v == nullptr || v->media->shape().read_only || sizes[s] >> size_bits != slots_[s].generation) continue;
    v->size = sizes[s] & size_mask;
    const int file = v->media->file();
    struct stat about;
    if (fstat(file, &about) != 0 ||
        (static_cast<u64>(about.st_size) != v->size && ftruncate(file, static_cast<off_t>(v->size)) != 0) || fsync(file) != 0) {
      throw_os_error("flush", "a file in " + root_, errno, "make room on its disk, then flush again");
    }
  }
}

int file_space::open_to_read(std::string const& path) const {
  owned_file file = names_.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat about;
  if (!file.valid() || fstat(file.get(), &about) != 0) return -1;
  if (!S_ISREG(about.st_mode)) return errno = ENODEV, -1;
  return file.release();
}

u32 file_space::open_files() {
  const std::lock_guard lock(mutex_);
  return static_cast<u32>(slots_.size() - free_slots_.size() - used_up_);
}

bool file_space::has_free_slot() {
  const std::lock_guard lock(mutex_);
  return !free_slots_.empty();
}

u64 file_space::versions() {
  const std::lock_guard lock(mutex_);
  return versions_.size();
}

file_space::outcome file_space::open(file_call& call, std::string const& path) {
  const u32 flags = call.asked.flags;
  if (!are_open_flags_valid(flags)) return refuse(EINVAL);
  if ((flags & file_flag::write) != 0 && !writable_) return refuse(EROFS);
  // What would be created is not where there is no room for it.
  std::optional<line_ranges::extent> reserved;
  if ((flags & file_flag::create) != 0) {
    const std::lock_guard lock(mutex_);
    reserved = ranges_.take(granules_for(0));
    // Without room, what is open already can still be opened.
    if (const outcome asks = reserved ? refuse(ENOSPC) : make_room(call, granules_for(0)); asks.error == 0) return asks;
  }
  const outcome answer = open_file(call, path, reserved);
  const std::lock_guard lock(mutex_);
  if (reserved) ranges_.give(*reserved);
  return answer;
}

file_space::outcome file_space::open_file(file_call& call, std::string const& path,
                                          std::optional<line_ranges::extent>& reserved) {
  const u32 flags = call.asked.flags;
  // Lines are read before a part of them is stored into, so to write is to read, too. A pipe must not be waited for.
  int how = ((flags & file_flag::write) != 0 ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY;
  const bool creates = (flags & file_flag::create) != 0;
  const bool has_room = has_free_slot() && (!creates || reserved);
  if (creates && has_room) how |= O_CREAT;
  if ((flags & file_flag::exclusive) != 0 && has_room) how |= O_EXCL;
  const u64 renames = renames_.load();
  owned_file file(names_.open(path, how, 0666));
  if (file.get() < 0) return refuse(creates && !has_room && errno == ENOENT ? (reserved ? ENFILE : ENOSPC) : errno);
  if (!has_room && (flags & file_flag::exclusive) != 0) return refuse(EEXIST);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return refuse(errno);
  if (S_ISDIR(about.st_mode)) return refuse(EISDIR);
  if (!S_ISREG(about.st_mode)) return refuse(ENODEV);
  if (fcntl(file.get(), F_SETFL, 0) != 0) return refuse(errno);  // else io_uring gives up where it would wait for the disk
  outcome answer = open_version(call, file.release(), reserved);
  if (answer.generation != 0) answer.number = renames;
  return answer;
}

file_space::outcome file_space::open_version(file_call& call, int opened, std::optional<line_ranges::extent>& reserved) {
  owned_file file(opened);
  const u32 flags = call.asked.flags;
  const bool writes = (flags & file_flag::write) != 0, truncates = (flags & file_flag::truncate) != 0;
  const std::lock_guard lock(mutex_);
  close_retired();
  // Behind the lock: the last close of this file may have cut it since it was opened here.
  struct stat about;
  if (fstat(file.get(), &about) != 0) return refuse(errno);
  const file_stamp now = stamp_of(about, file.get());
  const identity id{about.st_dev, about.st_ino};
  const auto known = versions_.find(id);
  const bool shared = known != versions_.end() && known->second->users != 0;
  if (!shared) {
    const bool cuts = truncates && now.size != 0;
    const u64 size = cuts ? 0 : now.size, needed = granules_for(size);
    // What others have made of it since it was last open is another version; so is one that has too little room to grow.
    if (known == versions_.end() || !known->second->seen.is_same(now) || cuts || known->second->range.count < needed) {
      if (known != versions_.end()) forget_version(id);
      const bool fits = reserved && reserved->count == needed;
      std::optional<line_ranges::extent> range = fits ? std::exchange(reserved, {}) : ranges_.take(needed);
      if (!range) return make_room(call, needed);
      std::unique_ptr<version>& entry = versions_[id];
      entry = std::make_unique<version>();
      entry->id = id;
      entry->range = *range;
      entry->closed = closed_.insert(closed_.end(), id);
    }
    version& v = *versions_[id];
    if (!take_slot(v)) return refuse(ENFILE);
    if (cuts && (ftruncate(file.get(), 0) != 0 || fstat(file.get(), &about) != 0)) {
      const int error = errno;
      give_slot_back(v);
      return refuse(error);
    }
    closed_.erase(v.closed);
    v.seen = stamp_of(about, file.get());
    v.size = size;
    v.truncations = 0;
    v.can_write = writes;
  }
  version& v = *versions_[id];
  if (v.users == max_host_opens) return refuse(EMFILE);
  if (v.media == nullptr || (writes && v.media->shape().read_only)) {
    publish(v, storage_namespace::over_descriptor(file.release(), writes, v.size, v.range_bytes()));
  }
  if (writes) v.can_write = true;
  ++v.users;
  outcome answer;
  answer.slot = v.slot;
  answer.generation = slots_[v.slot].generation;
  answer.first_byte = v.first_byte();
  answer.range_bytes = v.range_bytes();
  answer.size = v.size;
  answer.kind = about.st_mode;
  return answer;
}

u64 file_space::granules_for(u64 size) const {
  const u64 whole = std::max<u64>(ceil_div(size, granule_bytes), 1), roomy = std::max(2 * whole, granules_ / growth_share);
  return writable_ && roomy <= granules_ / 2 ? roomy : whole;
}

void file_space::forget_version(identity const& id) {
  const auto found = versions_.find(id);
  ranges_.retire(found->second->range);
  closed_.erase(found->second->closed);
  versions_.erase(found);
}

// What an older version had is asked for first, then what files have that were closed longest ago.
file_space::outcome file_space::make_room(file_call& call, u64 granules) {
  if (granules > granules_) return refuse(ENOSPC);
  while (ranges_.retired() < granules && !closed_.empty()) forget_version(closed_.front());
  const line_ranges::reclaim reclaim = ranges_.begin_reclaim(granules, max_extents_to_forget);
  // Others may be at it; or all that is left has gone to open files.
  if (reclaim.extents.empty() && !ranges_.reclaims()) return refuse(ENOSPC);
  outcome answer;
  answer.number = reclaim.ticket;
  for (line_ranges::extent each : reclaim.extents) {
    const extent_to_forget extent{each.first * granule_bytes, each.count * granule_bytes};
    std::memcpy(call.path + answer.size, &extent, sizeof extent);
    answer.size += sizeof extent;
  }
  return answer;
}

file_space::outcome file_space::room_made(file_call::request const& asked) {
  const std::lock_guard lock(mutex_);
  ranges_.end_reclaim(asked.number, asked.flags == 0);
  return {};
}

bool file_space::take_slot(version& v) {
  while (!free_slots_.empty()) {
    v.slot = free_slots_.front();
    free_slots_.pop_front();
    entry_slot& slot = slots_[v.slot];
    constexpr u32 max_generations = 1u << (64 - size_bits);
    if (slot.generation + 1 >= max_generations) {  // used up: a descriptor of its first user could not be told apart
      ++used_up_;
      continue;
    }
    slot.owner = &v;
    return true;
  }
  return false;
}

void file_space::give_slot_back(version& v) {
  slots_[v.slot] = {slots_[v.slot].generation + 1, nullptr};
  free_slots_.push_back(v.slot);
}

// The old one goes when no pass that may have found it is under way.
void file_space::publish(version& v, std::unique_ptr<storage_namespace> media) {
  for (u64 k = v.range.first; k < v.range.first + v.range.count; ++k) {
    begins_[k].store(v.first_byte(), relaxed);
    table_[k].store(media.get(), std::memory_order_seq_cst);
  }
  std::swap(v.media, media);
  if (media == nullptr) return;
  retired gone{std::move(media), {}};
  for (auto const& queue : queues_) gone.passes.push_back(queue->passes.load(std::memory_order_seq_cst));
  retired_.push_back(std::move(gone));
}

void file_space::close_retired() {
  std::erase_if(retired_, [&](retired const& gone) {
    for (u64 q = 0; q < gone.passes.size(); ++q) {
      const u64 then = gone.passes[q];
      if (then % 2 == 1 && queues_[q]->passes.load(std::memory_order_seq_cst) == then) return false;
    }
    return gone.media->calls_under_way() == 0;
  });
}

file_space::version* file_space::find_open(file_call::request const& asked) {
  if (asked.slot >= slots_.size()) return nullptr;
  entry_slot const& slot = slots_[asked.slot];
  return slot.generation == asked.generation ? slot.owner : nullptr;
}

// Several threads report sizes, in no order: the largest counts, but for what is reported after a truncation.
void file_space::note_size(version& v, file_call::request const& asked) {
  const u32 truncations = asked.flags;
  if (truncations < v.truncations) return;
  v.size = truncations == v.truncations ? std::max(v.size, asked.number) : asked.number;
  v.truncations = truncations;
}

file_space::outcome file_space::close(file_call::request const& asked) {
  const std::lock_guard lock(mutex_);
  close_retired();
  version* const v = find_open(asked);
  if (v == nullptr || asked.opens == 0 || asked.opens > v->users) return refuse(EBADF);
  outcome answer;
  const bool wrote = v->media != nullptr && !v->media->shape().read_only;
  if (wrote) note_size(*v, asked);
  v->users -= static_cast<u32>(asked.opens);
  if (v->users != 0) {
    answer.generation = asked.generation;
    return answer;
  }
  // Whole lines were written: what follows the last byte goes. Nobody stores into it any more.
  const int file = v->media->file();
  struct stat about;
  if (wrote && fstat(file, &about) == 0 && static_cast<u64>(about.st_size) != v->size &&
      ftruncate(file, static_cast<off_t>(v->size)) != 0) {
    answer.error = static_cast<u32>(errno);
  }
  // Of a file that was only read, what others have done meanwhile is a change since its open.
  if (wrote && fstat(file, &about) == 0) v->seen = stamp_of(about, file);
  answer.slot = v->slot;
  give_slot_back(*v);
  answer.generation = slots_[v->slot].generation;
  publish(*v, nullptr);
  v->closed = closed_.insert(closed_.end(), v->id);
  return answer;
}

file_space::outcome file_space::sync(file_call::request const& asked) {
  owned_file file;
  {
    const std::lock_guard lock(mutex_);
    version* const v = find_open(asked);
    if (v == nullptr || v->media == nullptr) return refuse(EBADF);
    struct stat about;
    if (!v->media->shape().read_only) {
      note_size(*v, asked);
      // It may be longer than that, and is cut when the last descriptor closes.
      const bool shorter = fstat(v->media->file(), &about) == 0 && static_cast<u64>(about.st_size) < v->size;
      if (shorter && ftruncate(v->media->file(), static_cast<off_t>(v->size)) != 0) return refuse(errno);
    }
    file = owned_file(dup(v->media->file()));
  }
  return file.get() < 0 || fsync(file.get()) != 0 ? refuse(errno) : outcome{};
}

file_space::outcome file_space::truncate(file_call::request const& asked) {
  const std::lock_guard lock(mutex_);
  version* const v = find_open(asked);
  if (v == nullptr || v->media == nullptr) return refuse(EBADF);
  if (v->media->shape().read_only) return refuse(EBADF);
  note_size(*v, asked);
  if (ftruncate(v->media->file(), static_cast<off_t>(asked.number)) != 0) return refuse(errno);
  return {};
}

file_space::outcome file_space::stat(std::string const& path) {
  owned_file file(names_.open(path, O_PATH, 0));
  struct stat about;
  if (file.get() < 0 || fstat(file.get(), &about) != 0) return refuse(errno);
  outcome answer;
  answer.size = static_cast<u64>(about.st_size);
  answer.number = nanoseconds(about.st_mtim);
  answer.kind = about.st_mode;
  answer.slot = ~0u;
  const std::lock_guard lock(mutex_);
  const auto known = versions_.find({about.st_dev, about.st_ino});
  if (known == versions_.end() || known->second == nullptr || known->second->users == 0) return answer;
  answer.slot = known->second->slot;
  answer.generation = slots_[answer.slot].generation;
  if (known->second->can_write) answer.size = known->second->size;
  return answer;
}

file_space::outcome file_space::unlink(std::string const& path) {
  if (!writable_) return refuse(EROFS);
  std::string name;
  const owned_file parent = names_.open_parent(path, name);
  if (parent.get() < 0 || unlinkat(parent.get(), name.c_str(), 0) != 0) return refuse(errno);
  return note_rename();
}

file_space::outcome file_space::rename(std::string const& from, std::string const& to) {
  if (!writable_) return refuse(EROFS);
  if (to.find('\0') != std::string::npos) return refuse(EINVAL);
  std::string old_name, new_name;
  const owned_file old_parent = names_.open_parent(from, old_name);
  if (old_parent.get() < 0) return refuse(errno);
  const owned_file new_parent = names_.open_parent(to, new_name);
  if (new_parent.get() < 0) return refuse(errno);
  if (renameat(old_parent.get(), old_name.c_str(), new_parent.get(), new_name.c_str()) != 0) return refuse(errno);
  return note_rename();
}

file_space::outcome file_space::note_rename() {
  outcome answer;
  answer.number = ++renames_;
  return answer;
}

file_space::outcome file_space::read_folder(std::string const& path, u64 cursor, file_call& call) {
  struct linux_dirent64 {
    u64 inode;
    std::int64_t next;
    u16 bytes;
    u8 type;
    char name[1];
  };
  owned_file folder(names_.open(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, 0));
  if (folder.get() < 0) return refuse(errno);
  if (cursor != 0 && lseek(folder.get(), static_cast<off_t>(cursor), SEEK_SET) < 0) return refuse(errno);
  constexpr u64 room = sizeof call.path + sizeof call.other;
  alignas(8) char found[room];
  const long bytes = syscall(SYS_getdents64, folder.get(), found, sizeof found);
  if (bytes < 0) return refuse(errno);
  outcome answer;
  answer.number = cursor;
  for (long at = 0; at < bytes;) {
    auto const* const each = reinterpret_cast<linux_dirent64 const*>(found + at);
    char const* const name = found + at + offsetof(linux_dirent64, name);
    const u64 length = std::strlen(name);
    const u64 needed = round_up(sizeof(folder_entry) + length + 1, 8);
    if (answer.size + needed > room) break;
    at += each->bytes;
    answer.number = static_cast<u64>(each->next);
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
    folder_entry entry;
    entry.inode = each->inode;
    entry.bytes = static_cast<u16>(needed);
    entry.name_bytes = static_cast<u16>(length);
    entry.kind = static_cast<u32>(DTTOIF(each->type));
    char* const to = call.path + answer.size;
    std::memcpy(to, &entry, sizeof entry);
    std::memcpy(to + sizeof entry, name, length + 1);
    answer.size += needed;
  }
  answer.kind = bytes == 0 ? 0 : 1;  // 0: the end
  return answer;
}

}  // namespace penstock::controllers
