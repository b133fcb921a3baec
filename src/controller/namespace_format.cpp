#include "namespace_format.hpp"

#include "penstock/nvme/prp.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::controllers {
namespace {

constexpr u32 least_block_shift = 9, most_block_shift = 20;

std::string name_of_command_set(u8 csi) {
  switch (csi) {
    case 1: return "a key value namespace";
    case 2: return "a zoned namespace";
    case 3: return "subsystem local memory";
    case 4: return "a computational programs namespace";
    default: return "a namespace of another command set";
  }
}

/// The first format without metadata, of blocks as large if there is one; of at most `most` bytes. One of blocks larger than a
/// page, which volumes refuse, only where there is no other.
std::string remedy(nvme::identify_namespace const& space, u64 most) {
  const u32 shift = space.formats[space.format_index()].block_shift;
  const auto fits = [&](u32 k, u64 limit, bool as_large) {
    nvme::lba_format const& each = space.formats[k];
    return each.metadata_bytes == 0 && each.block_shift >= least_block_shift && each.block_shift <= most_block_shift &&
           u64{1} << each.block_shift <= limit && (!as_large || each.block_shift == shift);
  };
  const u64 page = std::min(most, u64{nvme::page_bytes});
  for (const auto& [limit, as_large] : {std::pair{page, true}, {page, false}, {most, true}, {most, false}}) {
    for (u32 k = 0; k < space.formats_count(); ++k) {
      if (fits(k, limit, as_large))
        return "format it (nvme format --lbaf=" + std::to_string(k) + "), which erases it, or use another";
    }
  }
  return "it has no format that would do: use another namespace";
}

std::string problem_of_metadata(nvme::identify_namespace const& space, u64 most) {
  const u32 bytes = space.formats[space.format_index()].metadata_bytes, type = space.protection_type();
  std::string problem;
  if (bytes != 0) {
    problem = "its blocks carry " + std::to_string(bytes) + " bytes of metadata each, " +
              (space.interleaves_metadata() ? "interleaved with the data" : "in a buffer of its own");
  }
  if (type != 0) problem += (bytes != 0 ? ", with" : "it has") + (" protection information of type " + std::to_string(type));
  if (problem.empty()) return problem;
  return problem + ", and Penstock moves blocks without any: " + remedy(space, most);
}

std::string problem_of_blocks(nvme::identify_namespace const& space, u64 most) {
  const u32 shift = space.formats[space.format_index()].block_shift;
  if (shift < least_block_shift) {
    return "its format in use, " + std::to_string(space.format_index()) + ", has blocks of 2^" + std::to_string(shift) +
           " bytes (LBADS), which no namespace has: " + remedy(space, most);
  }
  if (shift > most_block_shift || u64{1} << shift > most) {
    return "its blocks have 2^" + std::to_string(shift) + " bytes, and one command moves at most " + std::to_string(most) +
           ": " + remedy(space, most);
  }
  if (space.blocks >> (63 - shift) != 0) {
    return "it says that it has " + std::to_string(space.blocks) + " blocks of 2^" + std::to_string(shift) +
           " bytes, which no namespace has: look at the drive";
  }
  return {};
}

}  // namespace

std::string problem_of_command_set(u8 csi) {
  if (csi == 0) return {};
  return "it is " + name_of_command_set(csi) + " (command set " + std::to_string(csi) +
         "), and Penstock reads and writes namespaces of the NVM command set alone: use one of those (nvme create-ns --csi=0 "
         "makes one where the drive can)";
}

std::string problem_of_format(nvme::identify_namespace const& space, u64 transfer_bytes) {
  const u64 most = std::min(transfer_bytes, u64{1} << most_block_shift);
  if (space.format_index() >= space.formats_count()) {
    return "its format in use, " + std::to_string(space.format_index()) + " (FLBAS), is none of the " +
           std::to_string(space.formats_count()) + " that it has: " + remedy(space, most);
  }
  if (std::string problem = problem_of_metadata(space, most); !problem.empty()) return problem;
  if (std::string problem = problem_of_blocks(space, most); !problem.empty()) return problem;
  if ((space.key_per_io & 1u) != 0) {
    return "its commands must each name an encryption key (KPIOS), and Penstock's name none: turn Key Per I/O off with the "
           "tools of its maker";
  }
  if ((space.format_progress & 0x80u) != 0 && (space.format_progress & 0x7fu) != 0) {
    return "it is being formatted, and " + std::to_string(space.format_progress & 0x7fu) +
           " % are left: wait until that is over";
  }
  return {};
}

std::string problem_of_state(nvme::independent_namespace const& space) {
  const nvme::independent_namespace nothing;
  if ((space.state & 1u) != 0 || std::memcmp(&space, &nothing, sizeof space) == 0) return {};
  return "it is not ready (NSTAT): wait, and look at the drive's health (penstock nvme smart) if it stays so";
}

}  // namespace penstock::controllers
