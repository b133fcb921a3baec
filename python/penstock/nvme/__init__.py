"""NVMe drives of this machine, driven by Penstock itself: what `penstock nvme` does (docs/NVME.md)."""

from __future__ import annotations

from penstock.nvme.drives import Drive, Places, find_drive, list_drives

__all__ = ["Drive", "Places", "find_drive", "list_drives"]
