#include "libs/volume/verify.hpp"

#include "libs/volume/checksums.hpp"
#include "libs/volume/crc32c.hpp"
#include "libs/volume/reporter.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <optional>

namespace penstock::volumes {
namespace {

constexpr char const* changed = "is not what was written";

class verifier {
 public:
  verifier(volume& all, verdict& found, reporter& report) : volume_(all), found_(found), report_(report) {}

  void headers() {
    for (volume::header_problem const& each : volume_.check_headers()) {
      add({{}, each.member, each.offset, each.bytes, each.what});
    }
  }

  void file(stored_file const& file) {
    std::optional<checked_reader> sums;
    try {
      sums.emplace(volume_, file);
    } catch (error const& thrown) {
      if (thrown.kind() != error_kind::world) throw;
    }
    for (u32 replica = 0; replica < replicas(); ++replica) {
      look_at_sums(file, replica);
      if (sums) look_at_chunks(file, *sums, replica);
    }
  }

  u32 replicas() const { return volume_.shape().layout == volume_layout::replicated ? volume_.members() : 1; }

 private:
  void add(finding one) {
    ++found_.problems;
    if (found_.findings.size() < most_findings) found_.findings.push_back(std::move(one));
  }

  void add(stored_file const& file, u64 address, u64 bytes, u32 replica, std::string const& what) {
    const auto place = volume_.shape().view().locate(byte_offset{address}, replica);
    add({file.name, place.member, value(place.offset), bytes, what});
  }

  /// What keeps these bytes from being read, or nothing.
  std::string problem_of(u64 address, std::span<std::byte> to, u32 replica) {
    try {
      volume_.read(address, to, replica);
      return {};
    } catch (error const& thrown) {
      if (thrown.kind() != error_kind::world) throw;
      return std::string("cannot be read: ") + thrown.what();
    }
  }

  void look_at_sums(stored_file const& file, u32 replica) {
    std::vector<std::byte> bytes(file.end() - file.sums_begin);
    std::string problem = problem_of(file.sums_begin, bytes, replica);
    const auto used = std::span(bytes).first(file.chunks(volume_.shape()) * sizeof(u32));
    if (problem.empty() && crc32c(used) != file.sums_crc) problem = changed;
    if (!problem.empty()) add(file, file.sums_begin, bytes.size(), replica, "the list of checksums " + problem);
    found_.bytes += bytes.size();
  }

  void look_at_chunks(stored_file const& file, checked_reader const& sums, u32 replica) {
    buffer_.resize(std::max(buffer_.size(), std::min(window_bytes(volume_.shape()), file.sums_begin - file.begin)));
    u64 number = 0;
    for (u64 begin = file.begin; begin < file.sums_begin;) {
      const u64 end = window_end(volume_.shape(), begin, file.sums_begin);
      const std::span<std::byte> window = std::span(buffer_).first(end - begin);
      const bool at_once = problem_of(begin, window, replica).empty();
      for (u64 at = begin; at < end; ++number) {
        const chunk each = chunk_of(file, volume_.shape(), number);
        const auto part = window.subspan(at - begin, each.bytes);
        std::string problem = at_once ? std::string() : problem_of(each.address, part, replica);
        if (problem.empty() && crc32c(part) != sums.sum_of(number)) problem = changed;
        if (!problem.empty()) add(file, each.address, each.bytes, replica, problem);
        at += each.bytes;
      }
      found_.bytes += end - begin;
      report_.add(end - begin);
      begin = end;
    }
  }

  volume& volume_;
  verdict& found_;
  reporter& report_;
  std::vector<std::byte> buffer_;
};

}  // namespace

verdict verify(volume& all, progress_fn const& progress) {
  const u64 begun = now_ns();
  verdict found;
  u64 total = 0;
  for (stored_file const& each : all.table().files) total += each.sums_begin - each.begin;
  if (all.shape().layout == volume_layout::replicated) total *= all.members();
  reporter report(progress, "verifying", total);
  verifier work(all, found, report);
  work.headers();
  for (stored_file const& each : all.table().files) work.file(each);
  report.now();
  found.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  return found;
}

}  // namespace penstock::volumes
