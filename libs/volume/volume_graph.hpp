// Graphs on a volume, opened where they lie: "volume:social@0000:01:00.0,0000:02:00.0" is the graph `social` on those members.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "libs/volume/volume.hpp"

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

/// Throws bad_input where the volume has no such graph.
graph::graph_folder open_volume_graph(std::shared_ptr<shared_volume> const& from, std::string const& entry,
                                      std::string const& name);

/// What a user calls a graph: "volume:ENTRY@MEMBER,...", or the path of a folder.
graph::graph_folder open_graph(std::string const& name);

}  // namespace penstock::volumes
