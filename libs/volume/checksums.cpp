#include "libs/volume/checksums.hpp"

#include "libs/volume/crc32c.hpp"
#include "libs/volume/little_endian.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock::volumes {
namespace {

constexpr u64 window_of_member = u64{4} << 20;

u32 replicas_of(volume const& in) { return in.shape().layout == volume_layout::replicated ? in.members() : 1; }

/// Whether `use` has taken the bytes of one of the replicas.
template <class Use>
bool try_replicas(volume& from, u64 address, std::span<std::byte> to, Use const& use, std::string& problem) {
  for (u32 replica = 0; replica < replicas_of(from); ++replica) {
    try {
      from.read(address, to, replica);
      if (use()) return true;
      problem = "its bytes are not those that were written";
    } catch (error const& thrown) {
      if (thrown.kind() != error_kind::world) throw;
      problem = thrown.what();
    }
  }
  return false;
}

}  // namespace

chunk chunk_of(stored_file const& file, geometry const& shape, u64 number) {
  const u64 size = shape.chunk_bytes();
  const u64 grid = (file.begin / size + number) * size;
  const u64 begin = std::max(grid, file.begin);
  return {number, begin, std::min(grid + size, file.sums_begin) - begin};
}

u64 window_bytes(geometry const& shape) { return window_of_member * shape.members; }

u64 window_end(geometry const& shape, u64 address, u64 limit) {
  const u64 size = window_bytes(shape);
  return std::min(limit, (address / size + 1) * size);
}

std::string place_text(volume const& in, u64 address, u32 replica) {
  const auto place = in.shape().view().locate(byte_offset{address}, replica);
  return "member " + std::to_string(place.member) + " (" + in.name_of(place.member) + "), byte " +
         std::to_string(value(place.offset));
}

checked_reader::checked_reader(volume& from, stored_file const& file) : volume_(from), file_(file) {
  load_sums();
  buffer_.resize(std::min(window_bytes(from.shape()), file.sums_begin - file.begin));
}

void checked_reader::load_sums() {
  std::vector<std::byte> bytes(file_.end() - file_.sums_begin);
  const u64 used = file_.chunks(volume_.shape()) * sizeof(u32);
  std::string problem;
  const auto whole = [&] { return crc32c(std::span(bytes).first(used)) == file_.sums_crc; };
  if (!try_replicas(volume_, file_.sums_begin, bytes, whole, problem)) {
    throw_os_error("read", "the checksums of " + file_.name + " on " + place_text(volume_, file_.sums_begin, 0), EIO,
                   problem + ": import it again");
  }
  field_reader from(bytes);
  for (u64 k = 0; k < used / sizeof(u32); ++k) sums_.push_back(from.take<u32>());
}

bool checked_reader::matches(chunk const& each, std::span<std::byte const> bytes) const {
  return crc32c(bytes) == sums_[each.number];
}

void checked_reader::read_alone(chunk const& each, std::span<std::byte> to) {
  std::string problem;
  if (try_replicas(volume_, each.address, to, [&] { return matches(each, to); }, problem)) return;
  throw_os_error("read", file_.name + " on " + place_text(volume_, each.address, 0), EIO,
                 problem + ": penstock volume verify tells all such places; import it again");
}

std::span<std::byte const> checked_reader::read(u64 begin, u64 end) {
  const std::span<std::byte> all = std::span(buffer_).first(end - begin);
  bool read_at_once = true;
  try {
    volume_.read(begin, all);
  } catch (error const& thrown) {
    if (thrown.kind() != error_kind::world) throw;
    read_at_once = false;  // which of them it was is found below
  }
  const u64 first = begin / volume_.shape().chunk_bytes() - file_.begin / volume_.shape().chunk_bytes();
  for (u64 number = first; begin < end; ++number) {
    const chunk each = chunk_of(file_, volume_.shape(), number);
    const auto part = all.subspan(all.size() - (end - begin), each.bytes);
    if (!read_at_once || !matches(each, part)) read_alone(each, part);
    begin += each.bytes;
  }
  return all;
}

}  // namespace penstock::volumes
