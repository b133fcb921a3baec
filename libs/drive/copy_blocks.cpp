#include "libs/drive/copy_blocks.hpp"

#include "libs/drive/host_file.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/identify.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock::drive {
namespace {

constexpr u32 most_in_flight = 64;
constexpr u64 piece_bytes = 65536;
constexpr u32 most_cleared = 1u << 22;  ///< blocks of one command, so that progress is told
constexpr u64 report_interval_ns = 50 * one_millisecond_ns;

std::string object_of(pci_function const& function, u32 namespace_id) {
  return "namespace " + std::to_string(namespace_id) + " of " + function.name();
}

std::string blocks_text(u64 start, u64 blocks) {
  return blocks == 1 ? "block " + std::to_string(start)
                     : "blocks " + std::to_string(start) + " to " + std::to_string(start + blocks - 1);
}

/// Tells of progress now and then, and at the end.
class reporter {
 public:
  reporter(progress_fn const& to, std::string what, u64 total) : to_(to), what_(std::move(what)), total_(total) {}

  void at(u64 done) {
    done_ = done;
    if (done == total_ || now_ns() - last_ >= report_interval_ns) now();
  }
  void now() {
    last_ = now_ns();
    if (to_) to_(what_, done_, total_);
  }

 private:
  progress_fn const& to_;
  std::string what_;
  u64 total_, done_ = 0, last_ = 0;
};

/// A namespace that is gone through in pieces, of which a window is in flight. Piece k uses slot k modulo the window.
class piece_stream {
 public:
  piece_stream(pci_function& function, u32 namespace_id, std::string operation)
      : operation_(std::move(operation)), object_(object_of(function, namespace_id)),
        on_(open_cpu_executor(function.memory(), 1)), requests_(on_->memory(), memory_kind::local, most_in_flight),
        data_(on_->memory(), memory_kind::local, most_in_flight * piece_bytes), drive_(function, {.queues = 1}) {
    const std::vector<u32>& all = drive_.facts().namespaces;
    if (!std::ranges::binary_search(all, namespace_id)) {
      std::string ids;
      for (const u32 id : all) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
      refuse(ids.empty() ? "the drive has no namespaces: make one with the tools of its maker"
                         : "there is none: the drive has " + ids +
                               " (a namespace that is not attached to this controller does not count)");
    }
    facts_ = identify_namespace(drive_, namespace_id);
    const u32 depth = std::min(2 * most_in_flight, drive_.limits().queue_entries);
    window_ = std::min(most_in_flight, depth - 1);
    device_ = std::make_unique<block_device>(
        *on_, drive_, namespace_id, block_device_options{.queues = 1, .queue_depth = depth, .transfer_bytes = piece_bytes});
  }

  /// Throws bad_input where the drive does not offer the command.
  void choose_command(nvme::opcode op) {
    per_piece_ = std::min(most_cleared, block_io::most_blocks(device_->view(), op));
    if (per_piece_ != 0) return;
    refuse(op == nvme::opcode::write_zeroes
               ? "the drive has no Write Zeroes (ONCS bit 3): write a file of zeros instead"
               : "the drive has no Dataset Management (ONCS bit 2): it keeps blocks until they are written");
  }

  /// Throws bad_input for blocks that the namespace does not have.
  void choose(u64 start, u64 blocks) {
    if (blocks == 0) refuse("no blocks: ask for one at least");
    if (start >= facts_.blocks || blocks > facts_.blocks - start) {
      refuse(blocks_text(start, blocks) + ": it has " + blocks_text(0, facts_.blocks) + ": ask for some of those");
    }
    start_ = start;
    blocks_ = blocks;
  }

  /// Calls `before(data, bytes)` for each piece before its command goes out, and `after(data, bytes)` when it has ended well,
  /// both in order.
  template <class Before, class After>
  copied run(nvme::opcode op, reporter& report, Before const& before, After const& after) {
    if (per_piece_ == 0) choose_command(op);
    const u64 pieces = ceil_div(blocks_, per_piece_), begin = now_ns();
    u64 bytes_done = 0;
    bool wanted_back = false;
    for (u64 done = 0, sent = 0; done < pieces; ++done) {
      wanted_back = wanted_back || drive_.removal_requested();
      if (wanted_back && done == sent) give_back(done);
      for (; !wanted_back && sent < std::min(pieces, done + window_); ++sent) {
        before(data(sent), bytes(sent));
        submit_blocks(lone_thread(), device_->view(), op, true, request(sent), lba{first(sent)}, count(sent),
                      reinterpret_cast<u64>(data(sent)));
      }
      const status outcome = wait_blocks(lone_thread(), device_->view(), true, request(done));
      if (!outcome.ok()) throw_status(operation_ + " " + blocks_text(first(done), count(done)) + " of", object_, outcome);
      after(data(done), bytes(done));
      report.at(bytes_done += bytes(done));
    }
    if (op != nvme::opcode::read) flush();
    return {blocks_, bytes_done, pieces, static_cast<double>(now_ns() - begin) * 1e-9};
  }

  void check_writable() const {
    if (facts_.write_protected) refuse("it is write protected: change that with the tools of its maker");
  }

  namespace_facts const& facts() const { return facts_; }

  [[noreturn]] void refuse(std::string const& problem) const { throw_bad_input(operation_, object_, problem); }

 private:
  /// All that was sent has ended.
  [[noreturn]] void give_back(u64 pieces) {
    const u64 done = std::min(blocks_, pieces * per_piece_);
    throw_os_error(operation_, object_, ENODEV,
                   "the machine asks for the drive back, and gets it: " + std::to_string(done) + " of " +
                       std::to_string(blocks_) + " blocks were done");
  }

  void flush() {
    const status outcome = flush_blocks(lone_thread(), device_->view(), true, request(0));
    if (!outcome.ok()) throw_status("flush", object_, outcome);
  }

  u64 first(u64 piece) const { return start_ + piece * per_piece_; }
  u32 count(u64 piece) const { return static_cast<u32>(std::min<u64>(per_piece_, start_ + blocks_ - first(piece))); }
  u64 bytes(u64 piece) const { return u64{count(piece)} * facts_.block_bytes; }
  block_request& request(u64 piece) { return requests_.data()[piece % window_]; }
  std::byte* data(u64 piece) { return data_.data() + piece % window_ * piece_bytes; }

  std::string operation_, object_;
  std::unique_ptr<executor> on_;
  buffer<block_request> requests_;
  buffer<std::byte> data_;
  pcie_controller drive_;  ///< below what it may write until it has stopped
  namespace_facts facts_;
  std::unique_ptr<block_device> device_;
  u64 window_ = 0;
  u64 start_ = 0, blocks_ = 0;
  u32 per_piece_ = 0;  ///< blocks of one command
};

constexpr auto nothing = [](std::byte*, u64) {};

copied clear(pci_function& function, block_range const& range, nvme::opcode op, std::string const& operation,
             std::string const& doing, progress_fn const& progress) {
  piece_stream stream(function, range.namespace_id, operation);
  stream.check_writable();
  stream.choose_command(op);
  stream.choose(range.start, range.blocks);
  reporter report(progress, doing, range.blocks * stream.facts().block_bytes);
  return stream.run(op, report, nothing, nothing);
}

}  // namespace

copied read_to_file(pci_function& function, block_range const& range, std::string const& path, bool replace,
                    progress_fn const& progress) {
  output_file file(path, replace);
  piece_stream stream(function, range.namespace_id, "read");
  stream.choose(range.start, range.blocks);
  reporter report(progress, "reading", range.blocks * stream.facts().block_bytes);
  const copied done = stream.run(nvme::opcode::read, report, nothing,
                                 [&](std::byte const* from, u64 bytes) { file.write(from, bytes, [&] { report.now(); }); });
  file.finish();
  return done;
}

copied write_from_file(pci_function& function, block_range const& range, std::string const& path, progress_fn const& progress) {
  input_file file(path);
  piece_stream stream(function, range.namespace_id, "write");
  const u64 block = stream.facts().block_bytes;
  const std::string size = path + " has " + std::to_string(file.bytes()) + " bytes";
  stream.check_writable();
  if (file.bytes() == 0 || file.bytes() % block != 0) {
    stream.refuse(size + ", a block " + std::to_string(block) + ": give whole blocks (truncate -s %" + std::to_string(block) +
                  " fills it up with zeros)");
  }
  if (range.blocks != 0 && range.blocks != file.bytes() / block) {
    stream.refuse(size + ", which are " + std::to_string(file.bytes() / block) + " blocks and not " +
                  std::to_string(range.blocks) + ": leave the number out, or give the file that was meant");
  }
  stream.choose(range.start, file.bytes() / block);
  reporter report(progress, "writing", file.bytes());
  return stream.run(nvme::opcode::write, report, [&](std::byte* to, u64 bytes) { file.read(to, bytes); }, nothing);
}

copied zero_blocks(pci_function& function, block_range const& range, progress_fn const& progress) {
  return clear(function, range, nvme::opcode::write_zeroes, "zero", "zeroing", progress);
}

copied discard_blocks(pci_function& function, block_range const& range, progress_fn const& progress) {
  return clear(function, range, nvme::opcode::dataset_management, "discard", "discarding", progress);
}

}  // namespace penstock::drive
