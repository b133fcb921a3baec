// Arrays on the media that a run asks for: in their files behind the software controller, or copied to modelled drives that
// they are striped over.
#pragma once

#include "libs/media/array_file.hpp"
#include "libs/media/tile_array.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/host/progress.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::media {

struct array_store_options {
  std::string media = "file";  ///< or the preset of a modelled drive
  u32 drives = 1;              ///< modelled
  std::string place = "hbm";   ///< modelled: where their bytes lie: hbm or host
  io_engine engine = io_engine::automatic;
  bool direct = false;
  u32 controller_threads = 0;  ///< CUDA, files: 0: all cores but two
  u32 server_units = 0;        ///< modelled: SMs, 0: a third; CPU: threads, 0: polled in place
  u32 cache_queues = 0;        ///< of a cache over them, on each drive; 0: as many as caches take by themselves
  u64 stripe_bytes = most_tile_bytes;
  /// Of arrays on several drives. Replicated, each drive has all of them, and they are only read, through a cache.
  volume_layout layout = volume_layout::striped;
};

struct stored_file {
  array_file file;
  bool writable = false;
};

class array_store {
 public:
  /// Throws penstock::error for media that cannot be, and for files that cannot be opened so.
  array_store(executor& on, array_store_options const& options, std::vector<stored_file> arrays, progress_fn const& progress);

  bool modelled() const { return server_ != nullptr; }
  /// "mapping, io_uring", "model server".
  std::string engine() const;
  /// Of all drives: what they were specified to read and write, bytes/s; 0: not told.
  double specified_rate(bool writes) const;
  /// Reads and writes share it.
  bool one_rate() const;
  /// Bytes of the drives that an array lies on: of modelled ones as such drives have them, otherwise of its file.
  double capacity(u32 array) const;

  /// CPU threads, or SMs, that modelled drives leave to those who ask.
  u32 units_left() const;

  /// For a cache over the arrays, in their order. One at a time: its queues are the first of the controllers.
  std::vector<dataset_spec> datasets() const;
  /// Queues of such a cache on each drive, as its options are to have them; 0: it takes one for each unit by itself.
  u32 cache_queues() const;
  /// Byte of element 0 of an array in its dataset.
  u64 origin(u32 array) const { return modelled() ? 0 : arrays_[array].file.origin; }
  /// For kernels without a cache. REQUIRES: not replicated.
  tile_array tiles(u32 array) const;

  /// Modelled drives serve between start and stop, and nothing may be allocated meanwhile; files always.
  void start();
  void stop();

  /// The bytes of an array as they lie on the media. REQUIRES: stopped, or nobody writes; not replicated.
  void read(u32 array, u64 offset, std::span<std::byte> to) const;
  /// Makes an array zeros. REQUIRES: likewise.
  void clear(u32 array);
  /// Writes what the media has of an array to its file.
  void save(u32 array) const;

 private:
  bool replicated() const { return options_.layout == volume_layout::replicated; }
  /// Calls move(address on the media, offset, bytes) for the stripes of a range of an array, of all its replicas.
  template <class Move>
  void each_stripe(u32 array, u64 offset, u64 bytes, Move const& move) const;
  void load(u32 array, progress_fn const& progress);
  void add_modelled(progress_fn const& progress);
  void add_devices();

  executor& on_;
  array_store_options options_;
  std::vector<stored_file> arrays_;
  std::unique_ptr<software_controller> files_;
  std::unique_ptr<model_server> server_;
  std::vector<std::vector<buffer<u8>>> media_;  ///< [array][drive]
  std::vector<controller*> drives_;
  std::vector<std::vector<u32>> spaces_;  ///< [array][drive]
  std::vector<std::unique_ptr<block_device>> devices_;
  buffer<block_device_view> views_;  ///< [array * drives]
};

}  // namespace penstock::media
