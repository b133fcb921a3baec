"""Checkpoints of a model with its optimizers and tables: saved whole or not at all, and restored to the
numbers that they had.

A checkpoint is a folder, `checkpoint-00000007`, in a folder of checkpoints: `state.pt`, written by
torch.save; a .npy file for each table that is trained, and for what an optimizer keeps of each of its
elements; and `manifest.json`, which says what is what, and how many bytes each file has and their CRC-32, by
which `load` notices what was damaged. It is made under another name, put on the device for
good, and named last: whenever the process ends, the newest one that has its name is whole.

A copy of a table shares its extents with the table where the file system can (XFS, Btrfs); elsewhere it takes
the table's size, without its holes. A table that has not changed since the checkpoint before is linked to the
copy in that. Tables that are frozen are saved by reference alone.
"""

from __future__ import annotations

from penstock.checkpoint.manifest import numbers
from penstock.checkpoint.restoring import load, read_extra
from penstock.checkpoint.saving import save

__all__ = ["load", "numbers", "read_extra", "save"]
