// Blocks of a namespace into a file, and a file into blocks: `penstock nvme read` and `penstock nvme write`. Many commands are
// in flight, and the file is gone through in order, so that it may be a pipe. And blocks of which nothing is wanted any more:
// `penstock nvme zero` and `penstock nvme discard`, for which no data moves.
//
// All of them look now and then whether the machine asks for the drive back; then they end what is under way and throw.
#pragma once

#include "penstock/host/progress.hpp"
#include "penstock/pcie/pci_function.hpp"

#include <string>

namespace penstock::drive {

struct block_range {
  u32 namespace_id = 1;
  u64 start = 0;
  u64 blocks = 0;
};

struct copied {
  u64 blocks = 0;
  u64 bytes = 0;
  u64 commands = 0;
  double seconds = 0;  ///< without bringing the drive up; of a write with its flush
};

/// Reads blocks to a file, which appears when it is whole, or to the standard output ("-"). A file that exists is refused
/// unless `replace`. Throws penstock::error: bad_input for a range that the namespace does not have or a file that cannot be;
/// world, with the blocks, where the drive or the file's disk fails.
copied read_to_file(pci_function& function, block_range const& range, std::string const& path, bool replace,
                    progress_fn const& progress = {});

/// Writes a regular file of whole blocks to `range`, whose `blocks` are the file's, or 0: however many it has. All of it is on
/// the drive for good when this returns. Throws likewise; each block of the range is then old or new.
copied write_from_file(pci_function& function, block_range const& range, std::string const& path,
                       progress_fn const& progress = {});

/// Blocks that read as zeros afterwards, for good when this returns. Throws likewise; bad_input for a drive that has no Write
/// Zeroes. After a failure each block is as it was or zeros.
copied zero_blocks(pci_function& function, block_range const& range, progress_fn const& progress = {});

/// Blocks that the drive may forget: what they read as until they are written is its choice. Throws likewise; bad_input for a
/// drive that has no Dataset Management.
copied discard_blocks(pci_function& function, block_range const& range, progress_fn const& progress = {});

}  // namespace penstock::drive
