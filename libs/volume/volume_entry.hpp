// Entries of a volume that are read where they lie, by what a user calls them: "volume:social@0000:01:00.0,0000:02:00.0" is the
// entry `social` on those members, and "volume:social/edges.npy@..." one of its files.
#pragma once

#include "libs/graph/file.hpp"
#include "libs/volume/volume.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace penstock::volumes {

/// A volume that several files are read from.
struct shared_volume {
  explicit shared_volume(volume own) : all(std::move(own)) {}

  volume all;
  std::mutex mutex;  ///< of its reads
};

/// One file of it. Its chunks are not looked at: `penstock volume verify` does that.
class volume_file final : public graph::stored_bytes {
 public:
  volume_file(std::shared_ptr<shared_volume> from, stored_file file) : from_(std::move(from)), file_(std::move(file)) {}

  u64 size() const override { return file_.file_bytes; }
  void read(u64 offset, std::span<std::byte> to) const override;

  shared_volume& from() const { return *from_; }
  stored_file const& file() const { return file_; }

 private:
  std::shared_ptr<shared_volume> from_;
  stored_file file_;
};

/// The files of an entry, by their names in its folder; of an entry that is one file that one, by an empty name.
using entry_files = std::map<std::string, std::shared_ptr<volume_file const>>;

/// Throws bad_input where the volume has no such entry.
entry_files files_of(std::shared_ptr<shared_volume> const& from, std::string const& entry);

bool is_volume_name(std::string const& name);

/// What such a name is made of.
struct volume_name {
  std::string entry;
  std::string file;  ///< in the entry's folder; empty: none is named
  std::vector<std::string> members;
};

/// REQUIRES: is_volume_name(name). Throws bad_input for a part that is missing.
volume_name parse_volume_name(std::string const& name);

/// The name that it was parsed from.
std::string to_text(volume_name const& name);
/// The same with whole paths of members that are files.
volume_name absolute(volume_name name);

/// Opens the members to read them. Throws penstock::error.
std::shared_ptr<shared_volume> open_shared(volume_name const& name);

}  // namespace penstock::volumes
