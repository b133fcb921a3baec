// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Maps what a dma-buf stands for (a GPU's memory) into the IOMMU's table of a PCI device that a process drives through
 * VFIO, at an address of the process's choice. VFIO itself maps only memory of the process.
 *
 * Why it is safe. The caller shows the VFIO device's file and the dma-buf's, and so has both already; what is mapped is
 * what he could have copied. While a mapping lives, it holds
 *   - the VFIO device's file: its group then stays in its container, and so the IOMMU's domain stays;
 *   - the dma-buf, pinned: what it stands for is not freed or moved.
 * Both are let go of after the IOMMU has forgotten the addresses, also when the process dies in the middle.
 *
 * Needs Linux 6.10 (an inode for each VFIO device, by which its file is known).
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/iommu.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vfio.h>
#include <linux/vfio_pci_core.h>

#include "penstock_p2p.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#error "penstock_p2p needs Linux 6.10 or newer"
#endif

#define FENCE_PATIENCE (10 * HZ) /* for who still writes what was exported */

/* What one open file has mapped. */
struct p2p_user {
	struct mutex lock; /* guards the list */
	struct list_head mappings;
};

struct p2p_mapping {
	struct list_head link;
	struct file *vfio;
	struct pci_dev *pdev;
	struct iommu_domain *domain;
	struct dma_buf_attachment *attachment;
	struct sg_table *sgt;
	u64 iova;
	u64 length; /* mapped so far */
};

static struct miscdevice p2p_device;
static DEFINE_MUTEX(p2p_mapping_lock); /* no two find the same addresses free */

static void p2p_moved(struct dma_buf_attachment *attachment)
{
	WARN_ONCE(1, "penstock_p2p: what is pinned was moved\n");
}

static const struct dma_buf_attach_ops p2p_attach_ops = {
	.allow_peer2peer = true,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	.invalidate_mappings = p2p_moved,
#else
	.move_notify = p2p_moved,
#endif
};

/*
 * The domain that VFIO has given the device. The lock is only tried: whoever unbinds the device holds it, and waits for
 * the caller's file.
 */
static int find_domain(struct p2p_mapping *m)
{
	struct device *dev = &m->pdev->dev;
	struct vfio_pci_core_device *core;
	int ret = -ENODEV;

	if (!vfio_file_is_valid(m->vfio) || vfio_file_is_group(m->vfio))
		return -EINVAL;
	if (!device_trylock(dev))
		return -EBUSY;
	if (!dev->driver || strcmp(dev->driver->name, "vfio-pci"))
		goto out;
	core = dev_get_drvdata(dev);
	if (!core || core->vdev.dev != dev || !core->vdev.inode ||
	    m->vfio->f_mapping != core->vdev.inode->i_mapping)
		goto out;
	/* Such a file may leave its domain at any time. */
	ret = -EOPNOTSUPP;
	if (vfio_device_cdev_opened(&core->vdev))
		goto out;
	m->domain = iommu_get_domain_for_dev(dev);
	if (m->domain && m->domain->type == IOMMU_DOMAIN_UNMANAGED)
		ret = 0;
out:
	device_unlock(dev);
	return ret;
}

static bool overlaps(u64 first, u64 length, u64 other, u64 other_length)
{
	return first < other + other_length && other < first + length;
}

/* Whether the IOMMU takes these addresses, and nobody has them. */
static int check_addresses(struct p2p_mapping *m, u64 length)
{
	struct iommu_domain_geometry const *reach = &m->domain->geometry;
	struct iommu_resv_region *region;
	LIST_HEAD(reserved);
	int ret = 0;
	u64 at;

	if (m->iova < reach->aperture_start || m->iova + (length - 1) > reach->aperture_end)
		return -ERANGE;
	iommu_get_resv_regions(&m->pdev->dev, &reserved);
	list_for_each_entry(region, &reserved, list) {
		if (region->type != IOMMU_RESV_DIRECT_RELAXABLE &&
		    overlaps(m->iova, length, region->start, region->length))
			ret = -ERANGE;
	}
	iommu_put_resv_regions(&m->pdev->dev, &reserved);
	for (at = 0; !ret && at < length; at += PAGE_SIZE) {
		if (iommu_iova_to_phys(m->domain, m->iova + at))
			ret = -EEXIST;
		if (at % SZ_1G == 0)
			cond_resched();
	}
	return ret;
}

static int attach(struct p2p_mapping *m, int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);
	long left;
	int ret;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	/* By a device of no bus, so that what comes back are addresses on the machine's, not some IOMMU's. */
	m->attachment = dma_buf_dynamic_attach(buf, p2p_device.this_device, &p2p_attach_ops, m);
	if (IS_ERR(m->attachment)) {
		ret = PTR_ERR(m->attachment);
		m->attachment = NULL;
		dma_buf_put(buf);
		return ret;
	}
	dma_resv_lock(buf->resv, NULL);
	ret = dma_buf_pin(m->attachment);
	if (ret)
		goto unlock;
	m->sgt = dma_buf_map_attachment(m->attachment, DMA_BIDIRECTIONAL);
	if (IS_ERR_OR_NULL(m->sgt)) {
		ret = m->sgt ? PTR_ERR(m->sgt) : -ENOMEM;
		m->sgt = NULL;
		dma_buf_unpin(m->attachment);
		goto unlock;
	}
	left = dma_resv_wait_timeout(buf->resv, DMA_RESV_USAGE_KERNEL, false, FENCE_PATIENCE);
	ret = left > 0 ? 0 : left < 0 ? left : -ETIMEDOUT;
unlock:
	dma_resv_unlock(buf->resv);
	return ret;
}

/* Undoes as much of a mapping as there is: the IOMMU first, so that the device is out before anything is let go of. */
static void let_go(struct p2p_mapping *m)
{
	if (m->length)
		WARN_ON(iommu_unmap(m->domain, m->iova, m->length) != m->length);
	if (m->attachment) {
		struct dma_buf *buf = m->attachment->dmabuf;

		if (m->sgt) {
			dma_resv_lock(buf->resv, NULL);
			dma_buf_unmap_attachment(m->attachment, m->sgt, DMA_BIDIRECTIONAL);
			dma_buf_unpin(m->attachment);
			dma_resv_unlock(buf->resv);
		}
		dma_buf_detach(buf, m->attachment);
		dma_buf_put(buf);
	}
	pci_dev_put(m->pdev);
	if (m->vfio)
		fput(m->vfio);
	kfree(m);
}

/* What of the dma-buf lies in [offset, offset + length), piece by piece. */
static int map_pieces(struct p2p_mapping *m, u64 offset, u64 length)
{
	struct scatterlist *sg;
	u64 before = 0; /* of the dma-buf, ahead of this piece */
	int i, ret;

	for_each_sgtable_dma_sg(m->sgt, sg, i) {
		u64 piece = sg_dma_len(sg), skip = offset > before ? min(offset - before, piece) : 0;
		u64 bytes = min(piece - skip, length - m->length);
		phys_addr_t address = sg_dma_address(sg) + skip;
		int prot = IOMMU_READ | IOMMU_WRITE;

		before += piece;
		if (!bytes)
			continue;
		if (!PAGE_ALIGNED(address) || !PAGE_ALIGNED(bytes))
			return -EINVAL;
		prot |= pfn_valid(PHYS_PFN(address)) ? IOMMU_CACHE : IOMMU_MMIO;
		ret = iommu_map(m->domain, m->iova + m->length, address, bytes, prot, GFP_KERNEL_ACCOUNT);
		if (ret)
			return ret;
		m->length += bytes;
		if (m->length == length)
			return 0;
		cond_resched();
	}
	return -EINVAL; /* it ends before */
}

static int p2p_map(struct p2p_user *user, struct penstock_p2p_map const __user *arg)
{
	struct penstock_p2p_map ask;
	struct p2p_mapping *m;
	u64 end;
	int ret;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.argsz != sizeof(ask) || !ask.length || !PAGE_ALIGNED(ask.offset | ask.length | ask.iova) ||
	    check_add_overflow(ask.offset, ask.length, &end) || check_add_overflow(ask.iova, ask.length, &end) ||
	    ask.pci_bus > 255 || ask.pci_devfn > 255)
		return -EINVAL;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	m->iova = ask.iova;
	m->vfio = fget(ask.vfio_device);
	m->pdev = pci_get_domain_bus_and_slot(ask.pci_domain, ask.pci_bus, ask.pci_devfn);
	ret = !m->vfio ? -EBADF : !m->pdev ? -ENODEV : find_domain(m);
	if (!ret)
		ret = attach(m, ask.dma_buf);
	if (!ret && ask.offset + ask.length > m->attachment->dmabuf->size)
		ret = -EINVAL;
	if (ret)
		goto fail;
	/* Who maps through VFIO at the same addresses meanwhile hurts himself alone. */
	mutex_lock(&p2p_mapping_lock);
	ret = check_addresses(m, ask.length);
	if (!ret)
		ret = map_pieces(m, ask.offset, ask.length);
	mutex_unlock(&p2p_mapping_lock);
	if (ret)
		goto fail;
	mutex_lock(&user->lock);
	list_add(&m->link, &user->mappings);
	mutex_unlock(&user->lock);
	return 0;
fail:
	let_go(m);
	return ret;
}

static int p2p_unmap(struct p2p_user *user, struct penstock_p2p_unmap const __user *arg)
{
	struct penstock_p2p_unmap ask;
	struct p2p_mapping *m, *found = NULL;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.argsz != sizeof(ask) || ask.reserved)
		return -EINVAL;
	mutex_lock(&user->lock);
	list_for_each_entry(m, &user->mappings, link) {
		if (m->iova == ask.iova)
			found = m;
	}
	if (found)
		list_del(&found->link);
	mutex_unlock(&user->lock);
	if (!found)
		return -ENOENT;
	let_go(found);
	return 0;
}

static long p2p_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct p2p_user *user = file->private_data;

	switch (command) {
	case PENSTOCK_P2P_MAP:
		return p2p_map(user, (void __user *)arg);
	case PENSTOCK_P2P_UNMAP:
		return p2p_unmap(user, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int p2p_open(struct inode *inode, struct file *file)
{
	struct p2p_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return -ENOMEM;
	mutex_init(&user->lock);
	INIT_LIST_HEAD(&user->mappings);
	file->private_data = user;
	return nonseekable_open(inode, file);
}

static int p2p_release(struct inode *inode, struct file *file)
{
	struct p2p_user *user = file->private_data;
	struct p2p_mapping *m, *next;

	list_for_each_entry_safe(m, next, &user->mappings, link)
		let_go(m);
	mutex_destroy(&user->lock);
	kfree(user);
	return 0;
}

static const struct file_operations p2p_operations = {
	.owner = THIS_MODULE,
	.open = p2p_open,
	.release = p2p_release,
	.unlocked_ioctl = p2p_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* For everybody: what counts is who has the two files. */
static struct miscdevice p2p_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "penstock_p2p",
	.fops = &p2p_operations,
	.mode = 0666,
};

static int __init p2p_init(void)
{
	int ret = misc_register(&p2p_device);

	if (ret)
		return ret;
	ret = dma_coerce_mask_and_coherent(p2p_device.this_device, DMA_BIT_MASK(64));
	if (ret)
		misc_deregister(&p2p_device);
	return ret;
}

static void __exit p2p_exit(void)
{
	misc_deregister(&p2p_device);
}

module_init(p2p_init);
module_exit(p2p_exit);

MODULE_DESCRIPTION("GPU memory for drives that a process drives through VFIO");
MODULE_AUTHOR("Penstock");
MODULE_VERSION("1.0.0");
MODULE_LICENSE("Dual MIT/GPL");
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS("DMA_BUF");
#else
MODULE_IMPORT_NS(DMA_BUF);
#endif
