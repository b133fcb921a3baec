// The files below one folder, for kernels: their bytes are a namespace of a software_controller, and the calls that open and
// close them are answered by a call_controller.
#pragma once

#include "penstock/controller/controller.hpp"

#include <memory>
#include <span>
#include <string>

namespace penstock {

namespace controllers {
class file_space;
}

/// Nothing outside of `root` is reached by name. Shared by copies.
class file_folder {
 public:
  /// Of the line space, for a file that may grow.
  static constexpr u64 least_growing_bytes = u64{2} << 20;

  /// `bytes`: of the line space that versions of files get their ranges from, each at least a MiB, and none a second time.
  /// `max_files`: that are open at once. `shares`: in a writable folder each file has this part of the line space at least.
  /// Throws penstock::error with path, reason, remedy where the folder can't be opened.
  file_folder(std::string const& root, bool writable, u64 bytes, u32 max_files, u32 shares);

  /// Files that descriptors name now.
  u32 open_files() const;
  /// A descriptor of a regular file below the folder, to read, which the caller closes; -1 with errno. Links are not followed.
  int open_to_read(std::string const& path) const;
  /// Calls that the host has answered so far.
  u64 calls() const;
  /// Versions of files that have been opened so far, and have a range.
  u64 versions() const;
  /// As many are used: whole MiB of those that were asked for.
  u64 line_space_bytes() const;
  /// Gives the files that are open to be written the sizes that their descriptors' words say (folder_view::sizes), and syncs
  /// them. Throws penstock::error (world). REQUIRES: all that was stored is with the host, and nothing is stored meanwhile.
  void finalize_sizes(std::span<u64 const> sizes) const;
  std::shared_ptr<controllers::file_space> space() const { return space_; }

 private:
  std::shared_ptr<controllers::file_space> space_;
};

/// Answers calls about a folder (file/file_call.hpp): each is a command with the address of its record. Its threads make system
/// calls that may wait for a disk, so no data goes through its queues.
class call_controller final : public controller {
 public:
  /// The opcode of a call: vendor specific, data in both directions.
  static constexpr u8 opcode = 0xc3;

  /// `threads` 0: calls are answered by the thread that polls.
  call_controller(file_folder const& folder, u32 threads);
  ~call_controller() override;

  void attach(queue_rings const& rings) override;
  void detach(u16 queue) override;
  void poll(u16 queue) override;
  /// Records lie here. REQUIRES: before the first attach.
  void add_buffer(void* memory, u64 bytes) override;
  controller_limits limits() const override;
  std::string engine() const override { return "call"; }

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace penstock
