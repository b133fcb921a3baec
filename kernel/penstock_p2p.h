/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * /dev/penstock_p2p: memory of a GPU, or of whoever else exports a dma-buf, mapped for a PCI device that a process
 * drives through VFIO.
 */
#ifndef PENSTOCK_P2P_H
#define PENSTOCK_P2P_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PENSTOCK_P2P_DEVICE "/dev/penstock_p2p"

struct penstock_p2p_map {
	__u32 argsz; /* sizeof of this, as the caller knows it */
	__s32 dma_buf;
	__s32 vfio_device; /* of a group that is in a container; not of /dev/vfio/devices */
	__u32 pci_domain; /* that device's address */
	__u32 pci_bus;
	__u32 pci_devfn;
	__u64 offset; /* in the dma-buf; this, length and iova: multiples of a page */
	__u64 length;
	__u64 iova; /* where the device is to find it; nothing may be mapped there */
};

struct penstock_p2p_unmap {
	__u32 argsz;
	__u32 reserved; /* 0 */
	__u64 iova; /* as it was mapped */
};

/* Until it is unmapped or the file is closed, both descriptors' files stay open. */
#define PENSTOCK_P2P_MAP _IOW('P', 0xa0, struct penstock_p2p_map)
#define PENSTOCK_P2P_UNMAP _IOW('P', 0xa1, struct penstock_p2p_unmap)

#endif
