#include "libs/volume/drive_member.hpp"

#include "libs/volume/format.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/identify.hpp"

#include <algorithm>

namespace penstock::volumes {
namespace {

constexpr u32 most_in_flight = 64;
constexpr u64 command_bytes = 65536;

/// Data go through memory that the drive reaches: command k uses slot k modulo the window.
class drive_member final : public member {
 public:
  drive_member(std::shared_ptr<running_drive> drive, u32 namespace_id, access how)
      : drive_(std::move(drive)), namespace_id_(namespace_id), hold_(drive_, namespace_id, how, drive_member::name()),
        queue_(drive_, 1, false, drive_member::name()), on_(open_cpu_executor(drive_->function->memory(), 1)),
        requests_(on_->memory(), memory_kind::local, most_in_flight),
        data_(on_->memory(), memory_kind::local, most_in_flight * command_bytes) {
    const std::lock_guard turn(drive_->opening);
    const std::vector<u32> all = drive_->controller.namespaces();
    if (!std::ranges::binary_search(all, namespace_id)) {
      std::string ids;
      for (const u32 id : all) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
      refuse(ids.empty() ? "the drive has no namespaces: make one with the tools of its maker"
                         : "there is none: the drive has " + ids);
    }
    const namespace_facts facts = identify_namespace(queue_, namespace_id);
    if (facts.block_bytes > page_bytes) {
      refuse("its blocks have " + std::to_string(facts.block_bytes) + " bytes: format it with 512 or 4096");
    }
    if (how == access::write && facts.write_protected) {
      refuse("it is write protected: change that with the tools of its maker");
    }
    const u32 depth = std::min(2 * most_in_flight, queue_.limits().queue_entries);
    window_ = std::min(most_in_flight, depth - 1);
    bytes_ = facts.blocks * facts.block_bytes;
    device_ = std::make_unique<block_device>(
        *on_, queue_, namespace_id, block_device_options{.queues = 1, .queue_depth = depth, .transfer_bytes = command_bytes});
  }

  std::string name() const override { return "namespace " + std::to_string(namespace_id_) + " of " + drive_->function->name(); }
  u64 bytes() const override { return bytes_; }
  namespace_place place() const override { return {.drive = drive_, .namespace_id = namespace_id_}; }

  void read(std::span<piece const> pieces) override {
    run(
        nvme::opcode::read, pieces, [](piece const&, std::byte*) {},
        [](piece const& each, std::byte const* data) { std::copy_n(data, each.bytes, each.data); });
  }

  void write(std::span<piece const> pieces) override {
    run(
        nvme::opcode::write, pieces, [](piece const& each, std::byte* data) { std::copy_n(each.data, each.bytes, data); },
        [](piece const&, std::byte const*) {});
  }

  void flush() override {
    const status outcome = flush_blocks(lone_thread(), device_->view(), true, requests_.data()[0]);
    if (!outcome.ok()) throw_status("flush", name(), outcome);
  }

 private:
  [[noreturn]] void refuse(std::string const& problem) const { throw_bad_input("open", name(), problem); }

  std::vector<piece> cut(std::span<piece const> pieces) const {
    const u64 most = u64{device_->view().most_blocks} << device_->view().block_shift;
    std::vector<piece> commands;
    for (piece const& each : pieces) {
      for (u64 done = 0; done < each.bytes; done += most) {
        commands.push_back({each.offset + done, each.data + done, std::min(most, each.bytes - done)});
      }
    }
    return commands;
  }

  /// What was submitted is waited for, also when something before it has failed: its slot has memory of this object.
  template <class Before, class After>
  void run(nvme::opcode op, std::span<piece const> pieces, Before const& before, After const& after) {
    const std::vector<piece> commands = cut(pieces);
    const u32 shift = device_->view().block_shift;
    status failed;
    u64 failed_at = 0;
    for (u64 done = 0, sent = 0; done < (failed.ok() ? commands.size() : sent); ++done) {
      for (; failed.ok() && sent < std::min<u64>(commands.size(), done + window_); ++sent) {
        piece const& each = commands[sent];
        before(each, slot(sent));
        submit_blocks(lone_thread(), device_->view(), op, true, request(sent), lba{each.offset >> shift},
                      static_cast<u32>(each.bytes >> shift), reinterpret_cast<u64>(slot(sent)));
      }
      const status outcome = wait_blocks(lone_thread(), device_->view(), true, request(done));
      if (outcome.ok()) {
        after(commands[done], slot(done));
      } else if (failed.ok()) {
        failed = outcome;
        failed_at = commands[done].offset;
      }
    }
    if (failed.ok()) return;
    throw_status(op == nvme::opcode::read ? "read" : "write", name() + " at byte " + std::to_string(failed_at), failed);
  }

  block_request& request(u64 command) { return requests_.data()[command % window_]; }
  std::byte* slot(u64 command) { return data_.data() + command % window_ * command_bytes; }

  std::shared_ptr<running_drive> drive_;
  u32 namespace_id_;
  namespace_hold hold_;
  drive_share queue_;
  std::unique_ptr<executor> on_;
  buffer<block_request> requests_;
  buffer<std::byte> data_;
  std::unique_ptr<block_device> device_;  ///< ends before what its commands write goes
  u64 window_ = 0;
  u64 bytes_ = 0;
};

}  // namespace

std::unique_ptr<member> open_drive_member(std::shared_ptr<running_drive> const& drive, u32 namespace_id, access how) {
  return std::make_unique<drive_member>(drive, namespace_id, how);
}

}  // namespace penstock::volumes
