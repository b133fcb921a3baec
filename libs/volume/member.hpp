// What a volume lies on: a namespace of an NVMe drive, or a file or block device in its place.
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::volumes {

/// Bytes that are moved between a member and memory, in whole pages of both.
struct piece {
  u64 offset = 0;
  std::byte* data = nullptr;
  u64 bytes = 0;
};

struct running_drive;

/// Where a controller finds a member: in a file or block device, or as a namespace of a drive that runs.
struct namespace_place {
  std::string path{};
  std::shared_ptr<running_drive> drive{};
  u32 namespace_id = 0;
};

/// Holds what it stands for, so that nobody else writes it meanwhile. One call at a time; several members may be called at
/// once, of one drive, too. All throw penstock::error, and name the member.
class member {
 public:
  virtual ~member() = default;

  virtual std::string name() const = 0;
  virtual u64 bytes() const = 0;
  virtual namespace_place place() const = 0;
  virtual void read(std::span<piece const> pieces) = 0;
  virtual void write(std::span<piece const> pieces) = 0;
  /// What was written before is there for good when this returns.
  virtual void flush() = 0;
};

using member_list = std::vector<std::unique_ptr<member>>;

enum class access { read, write };

/// A regular file or a block device. One writer, or several readers, in whatever processes. Throws penstock::error for what is
/// neither, is in use, or may not be opened.
std::unique_ptr<member> open_file_member(std::string const& path, access how);

/// Makes a file of `bytes` zeros, which takes no space yet. Throws penstock::error for one that exists.
void make_file_member(std::string const& path, u64 bytes);

}  // namespace penstock::volumes
