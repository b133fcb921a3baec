"""All that it takes to open an array, and what refers to it in states and pickles."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex

from penstock.arrays.devices import executor_for
from penstock.arrays.dtypes import DType
from penstock.arrays.keeping import KeptRows, copy_together, keep
from penstock.arrays.memory import BorrowedMemory
from penstock.arrays.messages import naming
from penstock.arrays.tiers import TIERED
from penstock.options import CacheOptions, Choice, Few, Option, StorageOptions, Switch
from penstock.volume.names import is_volume, open_file

if TYPE_CHECKING:
    from penstock import _native
    from penstock.arrays.peers import Peers
    from penstock.callbacks import Progress

PLACEMENTS = ("auto", "hbm", "host", "host-cached", "storage")
CACHED = ("auto", "host-cached", "storage")
# Threads of the CPU that share gathers from host memory, unless they are given: more add little to the rate.
_MOST_HELPERS = 8
REFERENCE = (
    "path", "shape", "offset", "placement", "cache", "line", "directory", "engine", "direct", "threads",
    "name",
)  # fmt: skip


class ArrayOptions(CacheOptions, StorageOptions, total=False):
    """What `penstock.open` and `penstock.plan` take."""

    placement: Annotated[str, Choice("auto", names=(*PLACEMENTS, TIERED))]
    gather_threads: Annotated[SupportsIndex | None, Few(most=1024)]
    device: Annotated[Any, Option("auto")]
    writable: Annotated[bool, Switch()]
    dtype: Annotated[Any, Option()]
    shape: Annotated[Sequence[int] | None, Option()]
    offset: Annotated[int | None, Option()]
    name: Annotated[str | None, Option()]
    scores: Annotated[Any, Option()]
    hot: Annotated[Any, Option()]
    below: Annotated[str | None, Option()]
    peers: Annotated[Any, Option()]
    replicated: Annotated[float | None, Option()]


@dataclass(frozen=True)
class Opened:
    """All that it takes to open an array again."""

    path: str | None
    shape: tuple[int, ...]
    dtype: DType
    offset: int
    placement: str
    device: str
    writable: bool
    cache: int
    line: int
    directory: str
    engine: str
    direct: bool
    threads: int
    gather_threads: int | None = None  # None: as many as are likely to be idle
    name: str | None = None  # of the tensor or column, where the file has names
    stored: DType | None = None  # what the header calls the elements; None: there is none
    data: str | None = None  # the file that the bytes are in, where that is another: a shard, a chunk, a copy
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was done to open it: conversions
    memory: BorrowedMemory | None = field(default=None, compare=False)
    kept: KeptRows | None = field(default=None, compare=False)
    peers: Peers | None = field(default=None, compare=False)  # that share the copy of placement hbm

    @property
    def executor(self) -> _native.Executor:
        return executor_for(self.device)

    @property
    def on_volume(self) -> bool:
        return self.path is not None and is_volume(self.path)

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def placing(self) -> dict[str, Any]:
        """Options of `open` and `empty` that put another array where this one is."""
        cached = ("cache", "line") if self.placement in CACHED else ()
        return {name: getattr(self, name) for name in ("placement", "device", *cached)}

    def native_options(self) -> dict[str, Any]:
        names = ("placement", "writable", "cache", "line", "directory", "engine", "direct", "threads")
        return {name: getattr(self, name) for name in names} | {"gather_threads": self._helpers()}

    def _helpers(self) -> int:
        if self.gather_threads is not None:
            return self.gather_threads
        if self.placement != "host" or not self.executor.cuda:
            return 0
        return min(_MOST_HELPERS, len(os.sched_getaffinity(0)) // 2)

    def open(self, executor: _native.Executor, progress: Progress | None) -> tuple[Opened, _native.RowArray]:
        """The array, and this as it was opened: where peers do not reach each other it is another
        placement."""
        if self.peers is None:
            return self, self.make(executor, progress)
        nbytes = self.shape[0] * self.row_bytes
        made = copy_together(
            self.peers,
            executor,
            nbytes,
            lambda shared: self.make(executor, progress, shared),
            self.identity,
        )
        if not isinstance(made, str):
            return self, made
        note = f"placement host instead of hbm with peers: {made}"
        other = replace(self, placement="host", peers=None, notes=(*self.notes, note))
        return other, other.make(executor, progress)

    def make(
        self,
        executor: _native.Executor,
        progress: Progress | None = None,
        shared: dict[str, Any] | None = None,
    ) -> _native.RowArray:
        """The array, of this process alone. shared: native options of a copy that peers have together."""
        from penstock import _native

        borrowed = self.memory
        with self._named(progress) as seen:
            return _native.RowArray(
                executor,
                self.shape[0],
                self.row_bytes,
                self.data or self.path or "",
                self.offset,
                0 if borrowed is None else borrowed.address,
                None if borrowed is None or self.placement == "hbm" else borrowed.memory,  # which is a copy
                {**self.native_options(), **(shared or {})},
                seen,
                open_file(str(self.path)) if self.on_volume else None,
            )

    def keep(
        self,
        kept: KeptRows,
        array: _native.RowArray,
        executor: _native.Executor,
        progress: Progress | None,
        drop: Callable[[], None],
    ) -> Opened:
        """Keeps rows of the array that `make` made. Returns this with them, and with what is to be said.

        drop: As of keeping.keep.
        """
        with self._named(progress) as seen:
            done, notes = keep(kept, array, executor, seen, self.identity, drop)
        return replace(self, kept=done, notes=(*self.notes, *notes))

    def identity(self) -> list[int]:
        """Identifies the array on this machine: by its file, or by some of its bytes in memory."""
        about = [self.offset, self.row_bytes, *self.shape]
        if self.memory is not None:
            return [*about, self.memory.checksum()]
        if self.on_volume:
            return [*about, *open_file(str(self.path)).identity]
        file = Path(self.data or self.path or "").stat()
        return [*about, file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns]

    def _named(self, progress: Progress | None) -> AbstractContextManager[Progress | None]:
        if self.path is None:
            return nullcontext(progress)
        return naming("open", self.path, self.data or self.path, progress=progress)

    def reference(self) -> dict[str, Any]:
        """What finds the array again, of plain types, never its bytes. ValueError for memory."""
        self.check_portable()
        plain = {name: getattr(self, name) for name in REFERENCE}
        return plain | {"dtype": self.dtype.name, "stored": None if self.stored is None else self.stored.name}

    def check_portable(self) -> None:
        if self.path is None:
            raise ValueError(
                "an array in memory cannot be pickled by reference: save it to a file and open that"
            )
