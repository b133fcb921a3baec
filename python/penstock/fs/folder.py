"""Folders whose files kernels read and write, and the host in the same way."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, SupportsIndex, TypedDict

from penstock.arguments import reading
from penstock.arrays.layout import path_text
from penstock.graph.options import Executor
from penstock.native import load_native
from penstock.options import Choice, Count, Few, Size, Switch, checked, show_options
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self, Unpack

    from penstock._native import FileDescriptor, MountedFolder

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# Of file_call.hpp.
READ, WRITE, CREATE, TRUNCATE, APPEND, EXCLUSIVE, WRITE_ONCE = 1, 2, 4, 8, 16, 32, 64
MODES = {
    "r": READ,
    "r+": READ | WRITE,
    "w": WRITE | CREATE | TRUNCATE,
    "w+": READ | WRITE | CREATE | TRUNCATE,
    "a": WRITE | CREATE | APPEND,
    "a+": READ | WRITE | CREATE | APPEND,
    "o": WRITE | CREATE | WRITE_ONCE,
    "x": WRITE | CREATE | EXCLUSIVE,
    "x+": READ | WRITE | CREATE | EXCLUSIVE,
}


class MountOptions(TypedDict, total=False):
    """What `mount` takes."""

    writable: Annotated[bool, Switch()]
    executor: Annotated[Executor, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="4KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]
    max_files: Annotated[SupportsIndex | None, Few()]


_REASONS = {
    errno.EXDEV: "it leads out of the folder",
    errno.ENFILE: "as many files are open as max_files allows: close some, or mount the folder for more",
    errno.EMFILE: "this process may open no more files: close some, or raise its limit (ulimit -n)",
    errno.ENOSPC: "its disk is full, or the files that are open leave no room in the line space: close some, "
    "or mount the folder with max_files for as many",
}


@dataclass(frozen=True)
class Facts:
    """What is known of a name."""

    size: int
    """Bytes."""
    changed_ns: int
    """Since 1970."""
    mode: int
    """As os.stat has it."""


class Launch(Protocol):
    """Of a kernel that has a folder (penstock.kernel)."""

    @property
    def done(self) -> bool: ...

    def settle(self, what: str) -> None: ...


# Launches that have a folder: it stays mounted until they end, also where nothing else holds it.
_under_way: list[tuple[Folder, Launch]] = []
_under_way_lock = threading.Lock()


def forget_ended() -> None:
    """Folders of launches that have ended are their holders' alone."""
    with _under_way_lock:
        ended = [entry for entry in _under_way if entry[1].done]
        _under_way[:] = [entry for entry in _under_way if entry not in ended]


class File:
    """An open file of a folder. Close it, or use it in a `with`."""

    def __init__(self, folder: Folder, path: Path, mode: str, descriptor: FileDescriptor) -> None:
        self._folder = folder
        self._descriptor: FileDescriptor | None = descriptor
        self.path = os.fsdecode(path)
        self.mode = mode

    @property
    def closed(self) -> bool:
        return self._descriptor is None

    @property
    def size(self) -> int:
        """Bytes, with those that kernels have stored."""
        error, size = self._folder.native.size_of(self._open())
        return self._checked(error, size)

    def read(self, count: int = -1, offset: int = 0) -> bytes:
        """Up to `count` bytes from `offset` on; -1: to the end of the file."""
        wanted = count if type(count) is int else whole_number(count)
        if wanted is None:
            raise TypeError(f"count {count!r}: give a whole number, or -1 for all")
        left = max(self.size - _checked_number("offset", offset), 0)
        room = bytearray(left if wanted < 0 else min(wanted, left))
        return bytes(memoryview(room)[: self.readinto(room, offset)])

    def readinto(self, buffer: Buffer, offset: int = 0) -> int:
        """Fill a writable buffer from `offset` on. Returns how many bytes there were."""
        start = _checked_number("offset", offset)
        with _memory_of(f"read {self.path}", buffer, writable=True) as (address, count):
            answer = self._folder.native.read_into(self._open(), address, count, start)
        return self._checked(*answer)

    def write(self, data: Buffer, offset: int = 0) -> int:
        """Store bytes at `offset`; with mode "a" behind the last one. Returns how many."""
        start = _checked_number("offset", offset)
        with _memory_of(f"write {self.path}", data) as (address, count):
            answer = self._folder.native.write_from(self._open(), address, count, start)
        return self._checked(*answer)

    def truncate(self, size: int) -> None:
        """Make the file `size` bytes long; what it gets is zeros."""
        self._checked(self._folder.native.truncate(self._open(), _checked_number("size", size)), 0)

    def sync(self) -> None:
        """Return when all that was stored is on the device for good (fsync)."""
        self._checked(self._folder.native.sync(self._open()), 0)

    def close(self) -> None:
        """End it. What was stored is with the kernel then."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if not self._folder.closed:
            self._checked(self._folder.native.close(descriptor), 0)

    def _open(self) -> FileDescriptor:
        if self._descriptor is None:
            raise ValueError(f"{self.path}: it is closed: open it again")
        return self._descriptor

    def _checked(self, error: int, value: int) -> int:
        if error != 0:
            raise OSError(error, self._reason(error), self.path)
        return value

    def _reason(self, error: int) -> str:
        if error != errno.EFBIG or self._descriptor is None:
            return os.strerror(error)
        room = f"it has room for {self._descriptor.range_bytes:,} bytes since it was opened"
        return f"{room}: open it again when it is longer, or mount the folder with a larger cache"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.fs.File {self.path!r} {'closed' if self.closed else self.mode}>"


class Folder:
    """The files below a folder, for kernels and for the host: see `mount`."""

    def __init__(self, root: str, native: MountedFolder) -> None:
        self.root = root
        self._native: MountedFolder | None = native
        self._process = os.getpid()
        self._begins = threading.RLock()  # held where no launch may begin

    @property
    def native(self) -> MountedFolder:
        if self._native is None:
            raise ValueError(f"{self.root}: it is closed: mount it again")
        if self._process != os.getpid():
            raise ValueError(
                f"{self.root}: this process was forked from the one that mounted it: mount it again"
            )
        return self._native

    @property
    def closed(self) -> bool:
        """Also in a forked process, where nothing of it is open."""
        return self._native is None or self._process != os.getpid()

    @property
    def view_address(self) -> int:
        """Address of a `penstock::folder_view`, which an extension copies and hands to its kernels.

        It is valid until the folder is closed. The extension is compiled with the headers of this version:
        `view_bytes` is sizeof(penstock::folder_view).
        """
        return self.native.view_address

    @property
    def view_bytes(self) -> int:
        return self.native.view_bytes

    def open(self, path: Path, mode: str = "r") -> File:
        """Open a file, by a group of the executor.

        Args:
            path: Below the folder; nothing outside is reached.
            mode: "r", "w", "a", "x", each also with "+", as of Python's open; always bytes. "o": to write
                each byte once, in any order, into a file that others may write at the same time: see
                docs/FILES.md.

        Raises:
            OSError: As open(2) has it; ENFILE where max_files are open, ENOSPC where those leave no room in
                the line space; EBUSY for a file that is open here in mode "o" and is to be in
                another; EXDEV where the name leads out of the folder, EROFS where the folder was mounted
                to read.
            ValueError: For another mode.
        """
        flags = MODES.get(mode.replace("b", ""))
        if flags is None:
            raise ValueError(f"mode {mode!r}: there is no such mode; choose one of {', '.join(MODES)}")
        error, descriptor = self.native.open(os.fsencode(path), flags)
        self._check(error, path)
        return File(self, path, mode, descriptor)

    def listdir(self, path: Path = "") -> list[str]:
        """Names in a folder, in no order."""
        error, names = self.native.list_names(os.fsencode(path) or b".")
        self._check(error, path)
        return [name for name, _ in names]

    def stat(self, path: Path) -> Facts:
        """Size, time and mode of a name; of a file that is open here, with what kernels have stored."""
        error, size, changed_ns, mode = self.native.stat(os.fsencode(path))
        self._check(error, path)
        return Facts(size, changed_ns, mode)

    def unlink(self, path: Path) -> None:
        """Take a name away; files that are open stay."""
        self._check(self.native.unlink(os.fsencode(path)), path)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, at once."""
        self._check(self.native.rename(os.fsencode(source), os.fsencode(target)), source)

    def stage(self, paths: Iterable[Path] | None = None) -> int:
        """Bring files into the cache, a group of the executor to a file.

        Args:
            paths: Of files; None: all below the folder. More than the cache holds drive each other out.

        Returns:
            Bytes of the files.

        Raises:
            OSError: For the first that cannot be read; the others are staged.
        """
        wanted = list(self._walk("")) if paths is None else list(paths)
        done = self.native.stage([os.fsencode(path) for path in wanted])
        for path, (error, _) in zip(wanted, done, strict=True):
            if paths is not None or error != errno.ENOENT:  # it may be gone since its folder was listed
                self._check(error, path)
        return sum(count for _, count in done)

    def inspect(self) -> dict[str, Any]:
        """Counts by name: `open_files`, `versions` of files with a place in the cache's line space,
        `host_calls` that were answered, `hits`, `misses`, `evictions`, bytes; sizes, executor and device."""
        return self.native.inspect()

    def lend(self, launch: Launch) -> None:
        """Keep the folder mounted until a kernel that has it has ended. ValueError: it is closed."""
        forget_ended()
        with self._begins, _under_way_lock:
            _ = self.native
            _under_way.append((self, launch))

    def flush(self) -> None:
        """Write all that was stored; files have the sizes that kernels gave them. Launches of
        `penstock.kernel` that have the folder end first; no kernel of an extension may run."""
        with self._settled("flush"):
            self.native.flush()

    def close(self) -> None:
        """Flush, and end the folder with all files that are open. Launches end first, as for `flush`.

        Where the flush fails the folder stays mounted: remove the cause and close it again.
        """
        if self.closed:
            return
        with self._settled("close"):
            if self._native is not None:
                self._native.flush()
                self._native = None

    @contextlib.contextmanager
    def _settled(self, what: str) -> Iterator[None]:
        """No launch has the folder, and none begins."""
        while True:
            with self._begins:
                with _under_way_lock:
                    running = [each for folder, each in _under_way if folder is self and not each.done]
                if not running:
                    yield
                    return
            for launch in running:
                launch.settle(f"{what} the folder {self.root}")

    def _walk(self, folder: str) -> Iterable[str]:
        error, names = self.native.list_names(os.fsencode(folder) or b".")
        self._check(error, folder)
        for name, kind in sorted(names):
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISDIR(kind):
                yield from self._walk(path)
            elif stat.S_ISREG(kind):
                yield path

    def _check(self, error: int, path: Path) -> None:
        if error != 0:
            why = _REASONS.get(error) or os.strerror(error)
            raise OSError(error, why, os.path.join(self.root, os.fsdecode(path)))  # noqa: PTH118

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.fs.Folder {self.root!r}{' closed' if self.closed else ''}>"


@show_options(MountOptions)
def mount(root: str | os.PathLike[str], **options: Unpack[MountOptions]) -> Folder:
    """Mount a folder for kernels: its files are opened, read and written by threads of the executor, through
    one cache (GPUfs: Silberstein et al., TOCS 2014).

    Args:
        root: The folder; nothing outside is reached by name.
        writable: Whether files may be written, created, renamed and removed.
        executor: "cpu", "cuda", or "auto".
        cache: Bytes for lines of all files; None takes 64 MiB, on a GPU 1 GiB.
        line: How much of a file comes at once, a power of two from 512 bytes to 64 KiB.
        threads: Of the CPU executor; 0: one for each core.
        max_files: That are open at once; each takes 100 bytes from the start, 80 of them of the GPU's
            memory. In a writable folder each may grow to its part of the line space (docs/FILES.md). None:
            65,536, and 4096 in a writable folder.

    Raises:
        penstock.Error: Where the folder cannot be opened, or the machine refuses.
        ValueError, TypeError: For a bad argument.
    """
    given = checked(MountOptions, options)
    if given["max_files"] == 0:
        raise ValueError("max_files 0: give 1 or more")
    path = path_text(root, "mount")
    native = load_native().MountedFolder(
        path,
        given["writable"],
        given["executor"],
        given["cache"] or 0,
        given["line"],
        given["threads"],
        given["max_files"] or 0,
    )
    return Folder(path, native)


@contextlib.contextmanager
def _memory_of(what: str, buffer: Buffer, *, writable: bool = False) -> Iterator[tuple[int, int]]:
    """Address and bytes of a buffer, which may map a file that others cut short."""
    import numpy as np

    view = memoryview(buffer)
    if writable and view.readonly:
        raise TypeError(f"{what}: {type(buffer).__name__} is read-only: give a writable buffer")
    if not view.c_contiguous:
        raise ValueError(f"{what}: the buffer's bytes do not follow each other: copy it first")
    memory = np.frombuffer(view.cast("B") if view.nbytes else b"", dtype=np.uint8)
    with contextlib.nullcontext() if isinstance(buffer, bytes | bytearray) else reading(what, memory):
        yield int(memory.ctypes.data), len(memory)


def _checked_number(what: str, value: SupportsIndex) -> int:
    number = value if type(value) is int else whole_number(value)  # which takes longer than a read
    if number is None:
        raise TypeError(f"{what} {value!r}: give a whole number")
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{what} {number}: it must be from 0 to 2^63 - 1")
    return number
