// Where an executor's memory comes from. Two kinds matter: `local` memory, next to the threads that run kernels (HBM, or plain
// memory for the CPU executor), and `shared` memory, which a controller's threads and kernels both reach (pinned host memory).
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

enum class memory_kind { local, shared };

/// Maps memory that is not the host's for a device. Thread-safe.
class peer_mapper {
 public:
  virtual ~peer_mapper() = default;

  /// Lets the device reach [address, address + bytes) at that address, which is the one that kernels have for it. `dma_buf`: a
  /// descriptor that stands for this memory, all of it, and stays the caller's. Throws penstock::error with the remedy.
  /// REQUIRES: multiples of a page.
  virtual void map_peer(void* address, u64 bytes, int dma_buf) = 0;
  /// When this returns the device does not reach it any more. REQUIRES: an address that was mapped.
  virtual void unmap_peer(void* address) noexcept = 0;
};

/// Local memory of one executor that others on the machine map, too, those of other processes among them.
struct memory_part {
  int file = -1;  ///< a descriptor that stands for it; the memory stays as long as one is open or it is mapped
  u64 bytes = 0;  ///< a multiple of memory_resource::part_granule
};

/// Allocates for one executor. Thread-safe. Addresses are valid in kernels of that executor; `shared` ones on the host, too.
class memory_resource {
 public:
  virtual ~memory_resource() = default;

  /// Zeroed, aligned to 4096 bytes. Throws penstock::error (world) that names the bytes asked for.
  virtual void* allocate(memory_kind kind, u64 bytes) = 0;
  virtual void deallocate(memory_kind kind, void* address, u64 bytes) noexcept = 0;

  /// Makes host memory of another owner reachable for kernels, at the address that it has: CUDA pins its pages. Ranges may
  /// share pages, as small allocations do, and may be registered more than once. `writable`: the process may store there.
  /// False: it was pinned already, and is not to be unregistered. Throws penstock::error (world) with the bytes and what the
  /// system says.
  virtual bool register_host(void* /*address*/, u64 /*bytes*/, bool /*writable*/) { return true; }
  /// REQUIRES: the same range was registered.
  virtual void unregister_host(void* /*address*/, u64 /*bytes*/) noexcept {}

  /// Makes registers of a device, which this process has mapped, reachable for kernels: where those have them, or nothing and
  /// the reason. CPU: nothing; a store to a device that is gone would end the process, so threads leave registers to its
  /// driver.
  struct registers_for_kernels {
    std::byte* address = nullptr;
    std::string reason;
  };
  virtual registers_for_kernels map_registers(void* /*address*/, u64 /*bytes*/) {
    return {nullptr, "threads of a CPU leave registers to the drive's driver"};
  }
  virtual void unmap_registers(void* /*address*/) noexcept {}

  /// Lets a device reach the local memory that is allocated from now on. Empty, or why that cannot be: nothing has changed
  /// then. REQUIRES: once; `device` outlives this.
  virtual std::string open_to(peer_mapper& /*device*/) { return "the memory of a CPU's threads is the host's"; }

  /// Makes a part; its descriptor is the caller's. Throws penstock::error (world): no room, or it cannot be shared.
  static constexpr u64 part_granule = u64{2} << 20;
  virtual int make_part(u64 bytes);
  /// Maps parts, of this executor or others, side by side: kernels read and write them. Throws penstock::error (world).
  virtual std::byte* map_parts(std::span<memory_part const> parts);
  /// Waits for kernels that read them. REQUIRES: what map_parts returned, and was given.
  virtual void unmap_parts(std::byte* /*begin*/, std::span<memory_part const> /*parts*/) noexcept {}
  /// Where local memory lies, by a name that all processes of the machine have for it.
  virtual std::string place() const { return "host"; }
  /// Empty, or why kernels do not reach local memory at that place faster than the host's.
  virtual std::string no_fast_link_to(std::string const& place) const {
    return place == "host" ? "" : "the memory of " + place + " is not the host's";
  }

  /// Of local memory, what is free now; 0: not known.
  virtual u64 free_bytes() const { return 0; }

  /// Host to memory of this resource and back; they return when the copy is done.
  virtual void write(void* to, void const* from, u64 bytes) = 0;
  virtual void read(void* to, void const* from, u64 bytes) = 0;
};

/// Owns an allocation of `T[count]`. Movable.
template <class T>
class buffer {
 public:
  buffer() = default;
  buffer(memory_resource& memory, memory_kind kind, u64 count)
      : memory_(&memory), kind_(kind), count_(count),
        data_(count == 0 ? nullptr : static_cast<T*>(memory.allocate(kind, count * sizeof(T)))) {}
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  buffer(buffer const&) = delete;
  buffer& operator=(buffer const&) = delete;
  ~buffer() {
    if (data_ != nullptr) memory_->deallocate(kind_, static_cast<void*>(data_), count_ * sizeof(T));
  }

  T* data() const { return data_; }
  u64 size() const { return count_; }
  u64 bytes() const { return count_ * sizeof(T); }

  /// Never gives the memory back.
  void leak() { data_ = nullptr; }

  void write(std::span<T const> from) { memory_->write(data_, from.data(), from.size_bytes()); }
  void read(std::span<T> to) const { memory_->read(to.data(), data_, to.size_bytes()); }

 private:
  void swap(buffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(kind_, other.kind_);
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
  }

  memory_resource* memory_ = nullptr;
  memory_kind kind_ = memory_kind::local;
  u64 count_ = 0;
  T* data_ = nullptr;
};

/// Owns a mapping of parts, not their descriptors. Movable.
class mapped_parts {
 public:
  mapped_parts() = default;
  mapped_parts(memory_resource& memory, std::vector<memory_part> parts)
      : memory_(&memory), parts_(std::move(parts)), begin_(memory.map_parts(parts_)) {}
  mapped_parts(mapped_parts&& other) noexcept { swap(other); }
  mapped_parts& operator=(mapped_parts&& other) noexcept {
    swap(other);
    return *this;
  }
  mapped_parts(mapped_parts const&) = delete;
  mapped_parts& operator=(mapped_parts const&) = delete;
  ~mapped_parts() {
    if (begin_ != nullptr) memory_->unmap_parts(begin_, parts_);
  }

  std::byte* data() const { return begin_; }

 private:
  void swap(mapped_parts& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(parts_, other.parts_);
    std::swap(begin_, other.begin_);
  }

  memory_resource* memory_ = nullptr;
  std::vector<memory_part> parts_;
  std::byte* begin_ = nullptr;
};

/// Plain memory for the CPU executor; `local` and `shared` are the same there. Lives as long as the process.
memory_resource& cpu_memory();

}  // namespace penstock
