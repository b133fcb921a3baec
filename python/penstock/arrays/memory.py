"""Memory that others own: where it lies now, and whether stores may reach it."""

from __future__ import annotations

import ctypes
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from penstock.arguments import is_torch, owner_of
from penstock.arrays.foreign import address_of

_SAMPLED = 4096


class BorrowedMemory:
    """Memory of a tensor or a NumPy array that is read in place.

    The owner may move it: torch does when it shares a storage with another process (`share_memory_`, pickling
    for a queue or a spawned worker) or resizes it, NumPy in `ndarray.resize(refcheck=False)`. Each use of the
    memory asks `moved` first, which is one comparison; `follow` gives the new address."""

    def __init__(self, memory: Any) -> None:
        # A tensor of our own over the same storage: `set_` and `.data =` of the given one leave it where it
        # was.
        self.memory = memory.detach() if is_torch(memory) else memory
        owner = owner_of(self.memory)
        self._owner = owner.detach() if is_torch(owner) else owner
        self.address = address_of(self.memory)
        self.nbytes = int(self.memory.nbytes)
        self._at = self._place()
        self._offset = self.address - self._at[0]
        self.lock = threading.Lock()

    def _place(self) -> tuple[int, int]:
        """Address and bytes of the owner; of a tensor its address alone, for a storage that is resized
        moves."""
        if is_torch(self._owner):
            return int(self._owner.data_ptr()), 0
        return int(self._owner.__array_interface__["data"][0]), int(self._owner.nbytes)

    @property
    def moved(self) -> bool:
        return self._place() != self._at

    def follow(self) -> bool:
        """Takes the owner's present address. False, and nothing is taken, where the owner has fewer bytes now
        than the array needs."""
        place = self._place()
        needed = self._offset + self.nbytes
        if is_torch(self._owner):
            first = self._owner.storage_offset() * self._owner.element_size()
            there = self._owner.untyped_storage().nbytes() - first
        else:
            there = place[1]
        if needed > there:
            return False
        self._at, self.address = place, place[0] + self._offset
        if not is_torch(self._owner) and self.memory is not self._owner:  # the view is of the memory that was
            self.memory = np.asarray(_At(self._owner, self.address, self.memory))
        return True

    def checksum(self) -> int:
        """Of some of its bytes, spread over all. The memory is the host's."""
        if self.nbytes == 0:
            return 0
        whole = np.frombuffer(memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.address)), np.uint8)
        return zlib.crc32(np.ascontiguousarray(whole[:: self.nbytes // _SAMPLED + 1]).data)


class _At:
    """An array like another, at an address in its owner's memory."""

    def __init__(self, owner: Any, address: int, like: np.ndarray[Any, Any]) -> None:
        self._owner = owner
        data = (address, not like.flags.writeable)
        self.__array_interface__ = {
            "shape": like.shape,
            "typestr": like.dtype.str,
            "data": data,
            "version": 3,
        }


def takes_stores(memory: Any) -> bool:
    """Whether stores into a tensor or a NumPy array reach memory that may be written to.

    By the mapping, where its owner did not allocate it: `torch.from_numpy` over a file that is mapped
    read-only gives a tensor like any other, and a store there ends the process."""
    owner = owner_of(memory)
    if not is_torch(memory) and not memory.flags.writeable:
        return False
    if is_torch(owner):
        own = owner.device.type != "cpu" or owner.untyped_storage().resizable()  # by torch's allocator
    else:
        own = owner.flags.owndata
    nbytes = int(memory.nbytes)
    return own or nbytes == 0 or _is_mapped_writable(address_of(memory), nbytes)


def _is_mapped_writable(address: int, nbytes: int) -> bool:
    end = address + nbytes
    for line in Path("/proc/self/maps").read_bytes().splitlines():
        span, access = line.split(b" ", 2)[:2]
        first, _, last = span.partition(b"-")
        if int(first, 16) < end and address < int(last, 16) and access[1:2] != b"w":
            return False
    return True
