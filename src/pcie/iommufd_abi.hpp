// The part of the kernel's iommufd and of VFIO's device files that is used here (linux/iommufd.h and linux/vfio.h of Linux 6.6
// and, for files, 6.14), for machines whose headers are older than their kernel.
#pragma once

#include <linux/types.h>
#include <linux/vfio.h>

#include <sys/ioctl.h>

namespace penstock::pcie::iommufd {

struct ioas_alloc {
  __u32 size, flags, out_ioas_id;
};
struct iova_range {
  __u64 start, last;
};
struct ioas_iova_ranges {
  __u32 size, ioas_id, num_iovas, reserved;
  __u64 allowed_iovas, out_iova_alignment;
};
struct ioas_map {
  __u32 size, flags, ioas_id, reserved;
  __u64 user_va, length, iova;
};
struct ioas_map_file {
  __u32 size, flags, ioas_id;
  __s32 fd;
  __u64 start, length, iova;
};
struct ioas_unmap {
  __u32 size, ioas_id;
  __u64 iova, length;
};
struct bind_device {
  __u32 argsz, flags;
  __s32 iommufd;
  __u32 out_devid;
};
struct attach_device {
  __u32 argsz, flags, pt_id;
};

inline constexpr __u32 fixed_iova = 1, writeable = 2, readable = 4;  ///< flags of maps

inline constexpr unsigned long alloc_space = _IO(';', 0x81);
inline constexpr unsigned long ask_ranges = _IO(';', 0x84);
inline constexpr unsigned long map_memory = _IO(';', 0x85);
inline constexpr unsigned long unmap_memory = _IO(';', 0x86);
inline constexpr unsigned long map_file = _IO(';', 0x8f);
inline constexpr unsigned long bind_to = _IO(VFIO_TYPE, VFIO_BASE + 18);
inline constexpr unsigned long attach_to = _IO(VFIO_TYPE, VFIO_BASE + 19);

}  // namespace penstock::pcie::iommufd
