// Members of a volume in memory whose power may go: at a write that a test chooses, with a write cache that has kept whatever
// sectors it liked of what was not flushed.
#pragma once

#include "libs/volume/member.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>

namespace penstock::test_support {

/// What a machine without power answers.
struct power_cut : std::runtime_error {
  power_cut() : std::runtime_error("the power is gone") {}
};

/// One machine: all of its members stop at once, after `writes` calls of write and flush.
struct power {
  explicit power(u64 writes = ~u64{0}) : left(writes) {}

  bool gone() const { return off.load(); }
  /// Whether this call is still whole.
  bool spend() {
    if (off) return false;
    if (left.fetch_sub(1) != 0) return true;
    off = true;
    return false;
  }
  std::atomic<u64> left;
  std::atomic<bool> off{false};
};

/// The bytes of a member, which outlive its machine.
struct disk {
  static constexpr u64 sector = 512;

  explicit disk(u64 bytes) : durable(bytes) {}

  /// A flush has failed: whoever reads sees all of what was written, and no later flush makes more of it last than did.
  void fail_flush(u64 seed) {
    auto seen = clean;
    seen.insert(seen.end(), unflushed.begin(), unflushed.end());
    settle(seed);
    clean = std::move(seen);
  }
  /// What is there after the power came back: of what was not flushed all, nothing, or some sectors.
  void settle(u64 seed) {
    clean.clear();
    std::mt19937_64 random(seed);
    const u64 kept = random() % 3;
    if (kept == 0) return flush();
    if (kept == 1) return unflushed.clear();
    for (auto const& [offset, bytes] : unflushed) {
      for (u64 at = 0; at < bytes.size(); at += sector) {
        if (random() % 2 == 0) continue;
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), sector,
                    durable.begin() + static_cast<std::ptrdiff_t>(offset + at));
      }
    }
    unflushed.clear();
  }
  void flush() {
    for (auto const& [offset, bytes] : unflushed) {
      std::copy(bytes.begin(), bytes.end(), durable.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    unflushed.clear();
  }

  std::vector<std::byte> durable;
  std::vector<std::pair<u64, std::vector<std::byte>>> unflushed{};  ///< in the order that they were written
  std::vector<std::pair<u64, std::vector<std::byte>>> clean{};      ///< in the cache, as if they were durable
};

class cut_member final : public volumes::member {
 public:
  cut_member(disk& on, power& from, std::string name = "memory") : disk_(on), power_(from), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  u64 bytes() const override { return disk_.durable.size(); }
  volumes::namespace_place place() const override { return {}; }

  void read(std::span<volumes::piece const> pieces) override {
    if (power_.gone()) throw power_cut();
    for (volumes::piece const& each : pieces) {
      std::copy_n(disk_.durable.data() + each.offset, each.bytes, each.data);
      for (auto const& [offset, bytes] : disk_.clean) overlay(each, offset, bytes);
      for (auto const& [offset, bytes] : disk_.unflushed) overlay(each, offset, bytes);
    }
  }

  void write(std::span<volumes::piece const> pieces) override {
    if (pieces.empty()) return;
    const bool whole = power_.spend();
    if (whole || !std::exchange(torn_, true)) {  // of the write that it came upon, some sectors may be there
      for (volumes::piece const& each : pieces) disk_.unflushed.push_back({each.offset, {each.data, each.data + each.bytes}});
    }
    if (!whole) throw power_cut();
  }

  void flush() override {
    if (!power_.spend()) throw power_cut();
    disk_.flush();
  }

 private:
  static void overlay(volumes::piece const& to, u64 offset, std::vector<std::byte> const& bytes) {
    const u64 begin = std::max(to.offset, offset), end = std::min(to.offset + to.bytes, offset + bytes.size());
    if (begin < end) std::copy_n(bytes.data() + (begin - offset), end - begin, to.data + (begin - to.offset));
  }

  disk& disk_;
  power& power_;
  std::string name_;
  bool torn_ = false;
};

}  // namespace penstock::test_support
