#include "file_space.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/core/clock.hpp"
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

file_space::file_space(std::string const& root, bool writable, u64 bytes, u32 max_files, u32 shares)
    : root_(root), names_(root), writable_(writable), bytes_(bytes / granule_bytes * granule_bytes),
      granules_(bytes / granule_bytes), least_granules_(granules_ / shares), ranges_(bytes / granule_bytes) {
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
  const std::scoped_lock lock(mutex_);
  return queues_.emplace_back(std::make_shared<pass_counter>());
}

/// An open between its system calls, which are made without the lock, and the rest.
struct file_space::open_work {
  file_call* call;
  owned_file file;
  struct stat about{};
  std::optional<line_ranges::extent> reserved;
  u64 renames = 0;
  outcome answer;
};

namespace {

std::string name_in(char const* field, u32 bytes) { return std::string(field, std::min(bytes, max_path_bytes - 1)); }
/// A name with a zero inside would be another one to the kernel.
bool is_cut(std::string const& path) { return path.find('\0') != std::string::npos; }

}  // namespace

void file_space::answer(std::span<file_call* const> calls) {
  if (calls.empty()) return;
  std::vector<open_work> opens;
  std::vector<std::pair<file_call*, outcome>> closes;
  for (file_call* const call : calls) {
    switch (static_cast<file_op>(call->asked.op)) {
      case file_op::open: opens.push_back(begin_open(*call)); break;
      case file_op::close: closes.emplace_back(call, outcome{}); break;
      default: call->given = answer_alone(*call); break;
    }
  }
  if (!opens.empty() || !closes.empty()) {
    media_list gone;  // closed behind the lock
    const std::scoped_lock lock(mutex_);
    gone = take_closable();
    for (auto& [call, answer] : closes) answer = close(call->asked);
    for (open_work& open : opens) end_open(open);
  }
  for (auto const& [call, answer] : closes) call->given = answer;
  for (open_work const& open : opens) open.call->given = open.answer;
  calls_.fetch_add(calls.size(), std::memory_order_relaxed);
}

file_space::outcome file_space::answer_alone(file_call& call) {
  const file_call::request asked = call.asked;
  const std::string path = name_in(call.path, asked.path_bytes);
  const bool cut = is_cut(path);
  switch (static_cast<file_op>(asked.op)) {
    case file_op::sync: return sync(asked);
    case file_op::truncate: return truncate(asked);
    case file_op::stat: return cut ? refuse(EINVAL) : stat(path);
    case file_op::unlink: return cut ? refuse(EINVAL) : unlink(path);
    case file_op::rename: return cut ? refuse(EINVAL) : rename(path, name_in(call.other, asked.other_bytes));
    case file_op::read_folder: return cut ? refuse(EINVAL) : read_folder(path, asked.number, call);
    case file_op::room_made: return room_made(asked);
    default: return refuse(ENOSYS);
  }
}

void file_space::finalize_sizes(std::span<u64 const> sizes) {
  const std::scoped_lock lock(mutex_);
  for (u64 s = 0; s < slots_.size(); ++s) {
    version* const v = slots_[s].owner;
    const u64 size = sizes[s] & size_mask;
    const bool is_known = sizes[s] >> size_bits == slots_[s].generation && size != size_mask;  // not where its open timed out
    if (v == nullptr || v->media->shape().read_only || !is_known) continue;
    v->size = size;
    if (!fit_size(*v, false) || fsync(v->media->file()) != 0) {
      throw_os_error("flush", "a file in " + root_, errno, "make room on its disk, then flush again");
    }
    note_seen(*v);
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
  const std::scoped_lock lock(mutex_);
  return static_cast<u32>(slots_.size() - free_slots_.size() - used_up_);
}

u64 file_space::versions() {
  const std::scoped_lock lock(mutex_);
  return versions_.size();
}

file_space::open_work file_space::begin_open(file_call& call) {
  open_work work{&call, owned_file(), {}, {}, 0, {}};
  const std::string path = name_in(call.path, call.asked.path_bytes);
  const u32 flags = call.asked.flags;
  if (is_cut(path) || !are_open_flags_valid(flags)) {
    work.answer = refuse(EINVAL);
  } else if ((flags & file_flag::write) != 0 && !writable_) {
    work.answer = refuse(EROFS);
  } else {
    work.answer = open_descriptor(work, path);
  }
  if (work.answer.error != 0) work.file = owned_file();
  return work;
}

// What would be created is not where there is no room for it. Without room, what is open already can still be opened.
file_space::outcome file_space::open_descriptor(open_work& work, std::string const& path) {
  const u32 flags = work.call->asked.flags;
  const bool creates = (flags & file_flag::create) != 0;
  bool has_slot = true, has_room = true;
  if (creates) {
    const std::scoped_lock lock(mutex_);
    has_slot = !free_slots_.empty();
    if (has_slot) work.reserved = ranges_.take(granules_for(0));
    if (has_slot && !work.reserved) {
      const outcome asks = make_room(*work.call, granules_for(0));
      if (asks.error == 0) return asks;
    }
    has_room = work.reserved.has_value();
  }
  // Lines are read before a part of them is stored into, so to write is to read, too. A pipe must not be waited for.
  int how = (flags & file_flag::write) == 0 ? O_RDONLY : (flags & file_flag::write_once) != 0 ? O_WRONLY : O_RDWR;
  how |= O_NONBLOCK | O_NOCTTY;
  if (creates && has_room) how |= O_CREAT;
  if ((flags & file_flag::exclusive) != 0 && has_room) how |= O_EXCL;
  work.renames = renames_.load();
  owned_file file(names_.open(path, how, 0666));
  if (!file.valid() && errno == EMFILE) {
    close_retired();
    file = names_.open(path, how, 0666);
  }
  if (!file.valid()) return refuse(creates && !has_room && errno == ENOENT ? (has_slot ? ENOSPC : ENFILE) : errno);
  if (!has_room && (flags & file_flag::exclusive) != 0) return refuse(EEXIST);
  if (fstat(file.get(), &work.about) != 0) return refuse(errno);
  if (S_ISDIR(work.about.st_mode)) return refuse(EISDIR);
  if (!S_ISREG(work.about.st_mode)) return refuse(ENODEV);
  if (fcntl(file.get(), F_SETFL, 0) != 0) return refuse(errno);  // else io_uring gives up where it would wait for the disk
  work.file = std::move(file);
  return {};
}

void file_space::end_open(open_work& work) {
  if (work.file.valid()) {
    work.answer = open_version(work);
    if (work.answer.generation != 0) work.answer.number = work.renames;
  }
  if (work.reserved) ranges_.give(*work.reserved);
}

file_space::outcome file_space::open_version(open_work& work) {
  const u32 flags = work.call->asked.flags;
  const bool writes = (flags & file_flag::write) != 0, truncates = (flags & file_flag::truncate) != 0;
  const bool once = (flags & file_flag::write_once) != 0;
  owned_file& file = work.file;
  struct stat& about = work.about;
  // Behind the lock: the last close of this file may have cut it since it was opened here.
  if (writable_ && fstat(file.get(), &about) != 0) return refuse(errno);
  const file_stamp now = stamp_of(about, file.get());
  const identity id{about.st_dev, about.st_ino};
  auto known = versions_.find(id);
  const bool shared = known != versions_.end() && known->second->users != 0;
  if (shared && known->second->written_once != once) return refuse(EBUSY);
  if (!shared && free_slots_.empty()) return refuse(ENFILE);
  if (!shared) {
    const bool cuts = truncates && now.size != 0;
    const u64 size = cuts ? 0 : now.size, needed = granules_for(size);
    // What others have made of it since it was last open is another version; so is one that has too little room to grow, and
    // what is written once.
    if (known == versions_.end() || !known->second->seen.is_same(now) || cuts || once || known->second->range.count < needed) {
      if (known != versions_.end()) forget_version(id);
      const bool fits = work.reserved && work.reserved->count == needed;
      std::optional<line_ranges::extent> range = fits ? std::exchange(work.reserved, {}) : ranges_.take(needed);
      if (!range) return make_room(*work.call, needed);
      known = versions_.emplace(id, std::make_unique<version>()).first;
      known->second->id = id;
      known->second->range = *range;
      known->second->closed = closed_.insert(closed_.end(), id);
    }
    version& v = *known->second;
    if (!take_slot(v)) return refuse(ENFILE);
    if (cuts && (ftruncate(file.get(), 0) != 0 || fstat(file.get(), &about) != 0)) {
      const int error = errno;
      give_slot_back(v);
      return refuse(error);
    }
    closed_.erase(v.closed);
    v.seen = cuts ? stamp_of(about, file.get()) : now;
    v.size = v.given_size = size;
    v.resized = false;
    v.truncations = 0;
    v.can_write = writes;
    v.written_once = once;
  }
  version& v = *known->second;
  if (v.users == max_host_opens) return refuse(EMFILE);
  if (v.media == nullptr || (writes && v.media->shape().read_only)) {
    const file_use use = once ? file_use::write_once : writes ? file_use::read_and_write : file_use::read;
    publish(v, storage_namespace::over_descriptor(file.release(), use, v.size, v.range_bytes()));
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
  const u64 whole = std::max<u64>(ceil_div(size, granule_bytes), 1), roomy = std::max(2 * whole, least_granules_);
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
  const std::scoped_lock lock(mutex_);
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
  retired_.push_back(std::move(media));
  has_unused_.store(true, std::memory_order_relaxed);
}

// Files that no pass can have found any more; they are closed when the list goes, which is not under the lock. To read the
// queues' counters takes longer than to close a file, so that is done once in a millisecond, or `now`.
file_space::media_list file_space::take_closable(bool now) {
  const auto is_over = [&](u64 q) {
    return passes_[q] % 2 == 0 || queues_[q]->passes.load(std::memory_order_seq_cst) != passes_[q];
  };
  media_list closable;
  for (u64 q = 0; q < passes_.size(); ++q) {
    if (!is_over(q)) return closable;
    passes_[q] = 0;
  }
  for (auto& media : sealed_) (media->calls_under_way() == 0 ? closable : retired_).push_back(std::move(media));
  sealed_.clear();
  has_unused_.store(!retired_.empty(), std::memory_order_relaxed);
  const u64 time_ns = now_ns();
  if (retired_.empty() || (!now && time_ns - sealed_ns_ < one_millisecond_ns)) return closable;
  sealed_ns_ = time_ns;
  sealed_.swap(retired_);
  passes_.clear();
  for (auto const& queue : queues_) passes_.push_back(queue->passes.load(std::memory_order_seq_cst));
  return closable;
}

void file_space::close_unused() {
  if (!has_unused_.load(std::memory_order_relaxed)) return;
  media_list gone;  // closed behind the lock
  const std::scoped_lock lock(mutex_);
  gone = take_closable();
}

void file_space::close_retired() {
  for (u32 turn = 0; turn < 2; ++turn) {  // what is sealed, then what this seals
    const std::scoped_lock lock(mutex_);
    take_closable(true);
  }
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

/// Gives the file the size that its users know; false, with errno. What others have cut stays cut where nobody here made the
/// file longer, and what they have appended behind all that was written here stays. What is written once never gets shorter by
/// it, since others may have made it longer, also between the two calls.
bool file_space::fit_size(version& v, bool only_longer) {
  const int file = v.media->file();
  const auto size = static_cast<off_t>(v.size);
  struct stat about;
  if (fstat(file, &about) != 0) return false;
  const bool cuts =
      about.st_size > size && !only_longer && !v.written_once && static_cast<u64>(about.st_size) <= v.media->written_end();
  if (!cuts && (about.st_size >= size || v.size <= v.given_size)) return true;
  v.resized = true;
  const bool is_longer = v.written_once && fallocate(file, 0, size - 1, 1) == 0;
  if (v.written_once && !is_longer && errno != EOPNOTSUPP) return false;
  if (!is_longer && ftruncate(file, size) != 0) return false;
  v.given_size = v.size;
  return true;
}

/// What its users have made of a file is no change that others made. Of a file that was only read, what others have done
/// meanwhile is a change since its open.
void file_space::note_seen(version& v) {
  struct stat about;
  if (!v.resized && v.media->written_end() == 0) return;
  if (fstat(v.media->file(), &about) == 0) v.seen = stamp_of(about, v.media->file());
  v.resized = false;
  v.media->forget_writes();
}

file_space::outcome file_space::close(file_call::request const& asked) {
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
  if (wrote && !fit_size(*v, false)) answer.error = static_cast<u32>(errno);
  if (wrote) note_seen(*v);
  answer.slot = v->slot;
  give_slot_back(*v);
  answer.generation = slots_[v->slot].generation;
  publish(*v, nullptr);
  v->closed = closed_.insert(closed_.end(), v->id);
  // Its lines lack what the file had before, or what others have appended.
  if (v->written_once || v->seen.size != v->size) forget_version(identity(v->id));
  return answer;
}

file_space::outcome file_space::sync(file_call::request const& asked) {
  owned_file file;
  {
    const std::scoped_lock lock(mutex_);
    version* const v = find_open(asked);
    if (v == nullptr || v->media == nullptr) return refuse(EBADF);
    if (!v->media->shape().read_only) {
      note_size(*v, asked);
      // It may be longer than that, and is cut when the last descriptor closes.
      if (!fit_size(*v, true)) return refuse(errno);
    }
    file = owned_file(dup(v->media->file()));
  }
  return file.get() < 0 || fsync(file.get()) != 0 ? refuse(errno) : outcome{};
}

file_space::outcome file_space::truncate(file_call::request const& asked) {
  const std::scoped_lock lock(mutex_);
  version* const v = find_open(asked);
  if (v == nullptr || v->media == nullptr) return refuse(EBADF);
  if (v->media->shape().read_only) return refuse(EBADF);
  note_size(*v, asked);
  if (ftruncate(v->media->file(), static_cast<off_t>(asked.number)) != 0) return refuse(errno);
  v->given_size = asked.number;
  v->resized = true;
  v->media->note_write(asked.number);  // a truncation before it may come to the host behind it
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
  const std::scoped_lock lock(mutex_);
  const auto known = versions_.find({about.st_dev, about.st_ino});
  if (known == versions_.end() || known->second == nullptr || known->second->users == 0) return answer;
  answer.slot = known->second->slot;
  answer.generation = slots_[answer.slot].generation;
  if (known->second->can_write) answer.size = known->second->size;
  if (known->second->written_once) answer.size = std::max(answer.size, static_cast<u64>(about.st_size));
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
