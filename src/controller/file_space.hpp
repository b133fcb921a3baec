// The files below one folder as one namespace: each version of a file that was opened has a range of its own in it, which
// another gets when no line of it is in the cache any more. So what a cache holds of an older version is never taken for a
// newer one, and a descriptor that outlived its file reads nothing else.
//
// Calls (open, close, stat, ...) come from any thread and take a lock; transfers find their file without one. A file that is
// taken out of the table is closed when no pass of a queue that may have found it goes on, and no system call does.
#pragma once

#include "file_stamp.hpp"
#include "folder_names.hpp"
#include "line_ranges.hpp"
#include "spinning_mutex.hpp"
#include "storage_namespace.hpp"

#include "penstock/file/file_call.hpp"
#include "penstock/file/file_name.hpp"

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::controllers {

/// Counts the passes of one queue: odd while it is in one.
struct alignas(64) pass_counter {
  std::atomic<u64> passes{0};

  void begin() { passes.fetch_add(1, std::memory_order_seq_cst); }
  void end() { passes.fetch_add(1, std::memory_order_release); }
};

/// Thread-safe.
class file_space {
 public:
  static constexpr u64 granule_bytes = u64{1} << 20;

  /// A file that may grow has one of so many `shares` of the bytes at least. Throws penstock::error with path, reason, remedy
  /// where the folder can't be opened.
  file_space(std::string const& root, bool writable, u64 bytes, u32 max_files, u32 shares);
  ~file_space();
  file_space(file_space const&) = delete;
  file_space& operator=(file_space const&) = delete;

  u64 bytes() const { return bytes_; }
  bool writable() const { return writable_; }

  /// The file that has the bytes from `offset` on, and where they lie in it. nullptr: none is open there. REQUIRES: inside of a
  /// pass, and until its end.
  storage_namespace* find(u64 offset, u64& within) const;
  /// For a queue that calls `find`. Stays for good.
  std::shared_ptr<pass_counter> add_queue();

  /// Answers calls in place. Those that take the lock take it once for all of them: what it guards moves between the caches of
  /// cores with it, which takes longer than what is done to it.
  void answer(std::span<file_call* const> calls);

  /// Closes what no pass can have found any more. Cheap where there is nothing.
  void close_unused();

  /// See file_folder.
  void finalize_sizes(std::span<u64 const> sizes);

  /// See file_folder.
  int open_to_read(std::string const& path) const;
  u64 calls() const { return calls_.load(std::memory_order_relaxed); }

  /// Files that descriptors name now, and versions of files that have a range.
  u32 open_files();
  u64 versions();

 private:
  struct identity {
    u64 device, inode;

    bool operator==(identity const&) const = default;
  };
  struct identity_hash {
    u64 operator()(identity const& id) const { return mix_word(id.inode ^ mix_word(id.device)); }
  };

  /// A version of a file, in the range that it has, which it keeps after its last close until others need it.
  struct version {
    identity id;
    file_stamp seen;
    line_ranges::extent range;
    std::list<identity>::iterator closed;  ///< its place in closed_, while it has no users
    bool can_write = false;                ///< its descriptor can
    bool written_once = false;             ///< all of its users do (file_flag::write_once)
    u32 users = 0;                         ///< opens that were answered, less those that closes gave back
    u32 slot = 0;                          ///< while it has users
    u64 size = 0;          ///< that its users have said it has: the file may be longer, by what follows in its last line
    u64 given_size = 0;    ///< that the file was found with, or was last given: `size` is larger where its users made it longer
    bool resized = false;  ///< by its users, since it was seen
    u32 truncations = 0;   ///< that `size` is behind
    std::unique_ptr<storage_namespace> media;  ///< while it has users

    u64 first_byte() const { return range.first * granule_bytes; }
    u64 range_bytes() const { return range.count * granule_bytes; }
  };
  using media_list = std::vector<std::unique_ptr<storage_namespace>>;

  struct entry_slot {
    u32 generation = 1;
    version* owner = nullptr;
  };

  using outcome = file_call::answer;
  struct open_work;
  open_work begin_open(file_call& call);
  outcome open_descriptor(open_work& work, std::string const& path);
  outcome answer_alone(file_call& call);
  void end_open(open_work& work);         // REQUIRES: mutex_
  outcome open_version(open_work& work);  // likewise
  outcome make_room(file_call& call, u64 granules);
  outcome room_made(file_call::request const& asked);
  outcome close(file_call::request const& asked);  // REQUIRES: mutex_
  outcome sync(file_call::request const& asked);
  outcome truncate(file_call::request const& asked);
  outcome stat(std::string const& path);
  outcome unlink(std::string const& path);
  outcome rename(std::string const& from, std::string const& to);
  outcome note_rename();
  outcome read_folder(std::string const& path, u64 cursor, file_call& call);

  version* find_open(file_call::request const& asked);
  u64 granules_for(u64 size) const;
  void forget_version(identity const& id);
  bool take_slot(version& v);
  void give_slot_back(version& v);
  void publish(version& v, std::unique_ptr<storage_namespace> media);
  media_list take_closable(bool now = false);  // likewise
  void close_retired();
  static void note_size(version& v, file_call::request const& asked);
  static bool fit_size(version& v, bool only_longer);
  static void note_seen(version& v);

  std::string root_;
  folder_names names_;
  bool writable_;
  u64 bytes_;
  std::atomic<storage_namespace*>* table_ = nullptr;  ///< [granules], mapped: what is not used takes no memory
  std::atomic<u64>* begins_ = nullptr;                ///< [granules] first byte of the range that has it
  u64 granules_ = 0;
  u64 least_granules_ = 0;               ///< that a file which may grow has
  std::atomic<u64> calls_{0};            ///< that were answered
  std::atomic<bool> has_unused_{false};  ///< files that are to be closed
  std::atomic<u64> renames_{0};          ///< names that calls have taken away

  spinning_mutex mutex_;  ///< guards what follows
  line_ranges ranges_;
  std::list<identity> closed_;  ///< versions without users, in the order of their last closes
  std::unordered_map<identity, std::unique_ptr<version>, identity_hash> versions_;
  std::vector<entry_slot> slots_;
  std::deque<u32> free_slots_;  ///< in turn, so that none is used up long before the others
  u64 used_up_ = 0;
  std::vector<std::shared_ptr<pass_counter>> queues_;
  media_list retired_;  ///< what no new pass finds
  media_list sealed_;   ///< what was retired before `passes_` was read
  std::vector<u64> passes_;
  u64 sealed_ns_ = 0;
};

}  // namespace penstock::controllers
