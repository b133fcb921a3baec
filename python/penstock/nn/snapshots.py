"""Copies of the file of a table: extents that the file system shares where it can, else bytes that the kernel
copies; holes stay holes."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock import _native
from penstock.arrays import Array
from penstock.nn.checksums import Checksum
from penstock.nn.generations import sync_folder
from penstock.sizes import format_bytes

_FICLONE = 0x40049409  # linux/fs.h
_BYTES_AT_ONCE = 64 << 20
_BYTES_READ = 256 << 10  # at once, into memory: they stay in the processor's cache until they are written
_NO_COPY_RANGE = (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ETXTBSY)

Copied = Callable[[int], None]  # called with the bytes that were copied since it was last called


def copy_table(
    array: Array, path: Path, copied: Copied | None = None, checksum: Checksum | None = None
) -> None:
    """A .npy file of a table's numbers, on the device for good when this returns.

    Args:
        array: in a file, flushed.
        path: a name that is free; nothing is left there of a copy that could not be finished.
        copied: as `Copied`.
        checksum: to which the file's bytes are added as they are copied; those of a copy that shares its
            extents are read for it.

    Raises:
        FileExistsError: the name is taken. OSError: no room, in bytes; or what the system refuses.
    """
    assert array.path is not None
    opened = array.opened
    with Path(array.path).open("rb") as source, path.open("xb") as target:
        try:
            if Path(array.path).suffix == ".npy":
                head, begin = b"", opened.offset
                if _clones(source.fileno(), target.fileno()):
                    target.truncate(begin + array.nbytes)
                    if checksum is None:
                        _report(copied, begin + array.nbytes)
                    else:
                        _read_range(source.fileno(), 0, begin + array.nbytes, checksum, copied)
                else:
                    _check_room(array.nbytes, path)
                    _copy_range(
                        source.fileno(), 0, target.fileno(), 0, begin + array.nbytes, copied, checksum
                    )
            else:
                head = _native.npy_header(opened.dtype.npy_kind, opened.dtype.itemsize, list(array.shape))
                _check_room(array.nbytes, path)
                target.write(head)
                target.flush()
                if checksum is not None:
                    checksum.add(head)
                _copy_range(
                    source.fileno(),
                    opened.offset,
                    target.fileno(),
                    len(head),
                    array.nbytes,
                    copied,
                    checksum,
                )
            os.fsync(target.fileno())
        except BaseException:
            path.unlink()
            raise
    sync_folder(path.parent)


def restore_range(
    snapshot: Path, begin: int, path: Path, offset: int, nbytes: int, copied: Copied | None = None
) -> None:
    """Copies numbers of a snapshot over those of a table, in place, and returns when they are on the device
    for good.

    Args:
        snapshot, begin: the file, and where its numbers begin.
        path, offset: the table's file, and where its numbers begin.
        nbytes: of the numbers.

    REQUIRES: no array has the table open to be written.
    """
    with snapshot.open("rb") as source, path.open("r+b") as target:
        _clear_range(source.fileno(), begin, target.fileno(), offset, nbytes)
        _copy_range(source.fileno(), begin, target.fileno(), offset, nbytes, copied)
        os.fsync(target.fileno())


def checksum_of(path: Path, seen: Copied | None = None) -> int:
    """Of a file's bytes. seen: called as `Copied`, with bytes that were read."""
    checksum = Checksum()
    with path.open("rb") as file:
        _read_range(file.fileno(), 0, os.fstat(file.fileno()).st_size, checksum, seen)
    return checksum.value


def _clones(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _report(copied: Copied | None, nbytes: int) -> None:
    if copied is not None:
        copied(nbytes)


def _check_room(nbytes: int, path: Path) -> None:
    free = os.statvfs(path.parent)
    room = free.f_bavail * free.f_frsize
    if nbytes > room:
        raise OSError(
            errno.ENOSPC,
            f"copy a table to {path}: it has {format_bytes(nbytes)}, and the file system has "
            f"{format_bytes(room)} "
            "left: free some, or choose another folder",
        )


def _extents(file: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where there is data, and its end; all of it where the file system does not say."""
    at = begin
    while at < end:
        try:
            first = os.lseek(file, at, os.SEEK_DATA)
            last = os.lseek(file, first, os.SEEK_HOLE)
        except OSError as problem:
            if problem.errno != errno.ENXIO:  # which is said behind the last data
                yield at, end
            return
        if first >= end:
            return
        yield first, min(last, end)
        at = last


def _clear_range(source: int, begin: int, target: int, offset: int, nbytes: int) -> None:
    """Zeros in the target where the source has holes."""
    zeros, at = bytes(1 << 20), begin
    for first, last in [*_extents(source, begin, begin + nbytes), (begin + nbytes, begin + nbytes)]:
        while at < first:
            count = min(len(zeros), first - at)
            os.pwrite(target, zeros[:count], offset + at - begin)
            at += count
        at = last


def _copy_range(
    source: int,
    begin: int,
    target: int,
    offset: int,
    nbytes: int,
    copied: Copied | None,
    checksum: Checksum | None = None,
) -> None:
    def copy(at: int, most: int) -> int:
        where = offset + at - begin
        if checksum is None:
            return _copy_some(source, at, target, where, min(_BYTES_AT_ONCE, most))
        part = _read_some(source, at, most)
        count = os.pwrite(target, part, where)
        checksum.add(part[:count])
        return count

    _for_range(source, begin, nbytes, copy, copied, checksum)
    if os.fstat(target).st_size < offset + nbytes:
        os.ftruncate(target, offset + nbytes)


def _read_range(file: int, begin: int, nbytes: int, checksum: Checksum, seen: Copied | None) -> None:
    def read(at: int, most: int) -> int:
        part = _read_some(file, at, most)
        checksum.add(part)
        return len(part)

    _for_range(file, begin, nbytes, read, seen, checksum)


def _for_range(
    file: int,
    begin: int,
    nbytes: int,
    take: Callable[[int, int], int],
    taken: Copied | None,
    checksum: Checksum | None,
) -> None:
    """Takes what is not in a hole, part by part in order, and reports what has been gone over.

    take: called with the place of a part and the most that it may have; returns how many bytes it took.
    """

    def skip(count: int) -> None:
        if checksum is not None:
            checksum.add_zeros(count)
        _report(taken, count)

    end = begin + nbytes
    done = begin
    for first, last in _extents(file, begin, end):
        skip(first - done)
        at = first
        while at < last:
            count = take(at, last - at)
            at += count
            _report(taken, count)
        done = last
    skip(end - done)


def _read_some(file: int, begin: int, most: int) -> bytes:
    part = os.pread(file, min(most, _BYTES_READ), begin)
    if not part:
        raise OSError(errno.EIO, "copy a table: its file has become shorter meanwhile: open it again")
    return part


def _copy_some(source: int, begin: int, target: int, offset: int, nbytes: int) -> int:
    try:
        count = os.copy_file_range(source, target, nbytes, begin, offset)
    except OSError as problem:
        if problem.errno not in _NO_COPY_RANGE:
            raise
        count = 0
    if count == 0:  # some file systems say so where they cannot
        count = os.pwrite(target, _read_some(source, begin, nbytes), offset)
    return count
