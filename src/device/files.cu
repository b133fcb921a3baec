// The calls of a folder's files, compiled by themselves with a register cap (cmake/penstock_cuda.cmake), so that a kernel which
// opens and reads files needs no more registers than `launch` leaves it.
#include "penstock/file/folder_view.hpp"

#include "penstock/group/warp.hpp"

namespace penstock {

#define PENSTOCK_FILE_CALLS(G)                                                                                  \
  template PENSTOCK_FN open_result folder_view::open(G, char const*, u32, u32) const;                           \
  template PENSTOCK_FN u32 folder_view::close(G, file_descriptor const&) const;                                 \
  template PENSTOCK_FN file_result folder_view::pread_slowly(G, file_descriptor const&, void*, u64, u64) const; \
  template PENSTOCK_FN file_result folder_view::pwrite(G, file_descriptor const&, void const*, u64, u64) const; \
  template PENSTOCK_FN mapped_bytes folder_view::map_slowly(G, file_descriptor const&, u64, u64, u32) const;    \
  template PENSTOCK_FN u32 folder_view::unmap_stored(G, file_descriptor const&, mapped_bytes const&) const;     \
  template PENSTOCK_FN u32 folder_view::sync(G, file_descriptor const&) const;                                  \
  template PENSTOCK_FN u32 folder_view::truncate(G, file_descriptor const&, u64) const;                         \
  template PENSTOCK_FN file_facts folder_view::stat(G, char const*, u32) const;                                 \
  template PENSTOCK_FN u32 folder_view::unlink(G, char const*, u32) const;                                      \
  template PENSTOCK_FN u32 folder_view::rename(G, char const*, u32, char const*, u32) const;                    \
  template PENSTOCK_FN file_result folder_view::read_folder(G, char const*, u32, u64&, void*) const

PENSTOCK_FILE_CALLS(warp);
PENSTOCK_FILE_CALLS(lone_thread);

}  // namespace penstock
