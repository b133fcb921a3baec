"""Random reads of 4 KiB and a sequential read of a file into GPU memory, by KvikIO and by Penstock.

    python benchmarks/kvikio_reads.py --results files.jsonl [--gib 1] [--pieces 65536] [--folder /tmp]

Needs a GPU, torch and KvikIO (pip install kvikio-cu13, which brings CuPy). The file lies in the page cache
and KvikIO reads it with POSIX calls (its compatibility mode), through its thread pool with each of
--threads and, for pieces, by the calling thread; its best rate is the baseline. Penstock gathers the pieces
as rows of an array behind a cache of an eighth of the file, and reads the whole by a slice. All bytes of
both are compared with what the file has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from array_bench import Bench, check, timed

DEVICE = "cuda"
PIECE = 4096
WORDS = PIECE // 8
MASK = 0x5BD1E9955BD1E995


def load_kvikio() -> tuple[Any, Any]:
    """CuPy and KvikIO, or one sentence."""
    try:
        import cupy
        import kvikio.defaults
    except ImportError as missing:
        needs = f"kvikio_reads.py needs KvikIO: {missing}: pip install kvikio-cu13"
        raise ModuleNotFoundError(needs) from None
    return cupy, kvikio


def make_file(path: Path, nbytes: int) -> None:
    """Word w of the file is w ^ MASK: no two pieces are alike. In the page cache, and clean."""
    step = 1 << 22
    with path.open("wb") as file:
        for first in range(0, nbytes // 8, step):
            words = np.arange(first, min(first + step, nbytes // 8), dtype=np.int64)
            (words ^ MASK).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def as_in_file(read: torch.Tensor, pieces: torch.Tensor) -> bool:
    """Whether `read` has the pieces of these numbers, in chunks that need little memory."""
    step = 1 << 14
    word = torch.arange(WORDS, device=DEVICE)
    return all(
        torch.equal(read[k : k + step], (pieces[k : k + step, None] * WORDS + word) ^ MASK)
        for k in range(0, len(pieces), step)
    )


class Reads:
    """The file, and reads of it: `batches` of random pieces, one for each repeat after the warm-up's."""

    def __init__(self, bench: Bench, path: Path, nbytes: int) -> None:
        self.bench, self.path, self.nbytes = bench, path, nbytes
        self.cupy, self.kvikio = load_kvikio()
        self.all = torch.arange(nbytes // PIECE, device=DEVICE)
        generator = torch.Generator(device=DEVICE).manual_seed(977)
        self.batches = [
            torch.randint(0, len(self.all), (bench.options.pieces,), device=DEVICE, generator=generator)
            for _ in range(1 + bench.options.repeats)
        ]

    def open(self) -> penstock.Array:
        return penstock.open(
            self.path,
            placement="storage",
            cache=self.nbytes // 8,
            line=PIECE,
            dtype="int64",
            shape=(self.nbytes // PIECE, WORDS),
        )

    def settings(self, caller: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        """Of KvikIO: its pool with some threads each; `caller`: reads by the thread that asks, too, which
        KvikIO does for those smaller than `gds_threshold`."""
        common = {"compat_mode": self.kvikio.CompatMode.ON, "auto_direct_io_read": False}
        if caller:
            yield "caller", {**common, "gds_threshold": 1 << 20}
        for threads in (int(word) for word in self.bench.options.threads.split(",")):
            yield f"{threads}_threads", {**common, "gds_threshold": 0, "num_threads": threads}

    def by_kvikio(
        self, name: str, caller: bool, read: Callable[[Any, int], int], right: Callable[[], bool], nbytes: int
    ) -> tuple[list[float], dict[str, Any]]:
        """Seconds of the best setting's repeats, and the rates of all. read(file, k) returns its bytes."""
        taken: dict[str, list[float]] = {}
        for setting, values in self.settings(caller):
            with self.kvikio.defaults.set(values), self.kvikio.CuFile(self.path, "r") as file:

                def call(k: int, file: Any = file, setting: str = setting) -> None:
                    check(read(file, k) == nbytes, f"{name}.{setting}")

                taken[setting] = timed(call, 1, self.bench.options.repeats)
            check(right(), f"{name}.{setting}")
        medians = {setting: statistics.median(seconds) for setting, seconds in taken.items()}
        best = min(medians, key=medians.__getitem__)
        rates = {f"kvikio_{setting}_gb_per_s": nbytes / s / 1e9 for setting, s in medians.items()}
        return taken[best], {"kvikio": self.kvikio.__version__, "best": best, **rates}

    def bench_pieces(self) -> None:
        name, last = "file.kvikio.read4k", self.batches[-1]
        nbytes = len(last) * PIECE
        offsets = [(batch.cpu() * PIECE).tolist() for batch in self.batches]
        theirs_to = self.cupy.zeros((len(last), WORDS), dtype=self.cupy.int64)
        buffers = list(theirs_to)

        def read(file: Any, k: int) -> int:
            reads = [file.pread(b, PIECE, at) for b, at in zip(buffers, offsets[k], strict=True)]
            return sum(one.get() for one in reads)

        def right() -> bool:
            same = as_in_file(torch.as_tensor(theirs_to, device=DEVICE), last)
            theirs_to.fill(0)  # the next setting has to read them, too
            return same

        theirs, details = self.by_kvikio(name, True, read, right, nbytes)
        out = torch.empty((len(last), WORDS), dtype=torch.int64, device=DEVICE)
        with self.open() as array:
            before = array.stats()["bytes_moved"]
            ours = timed(lambda k: array.gather(self.batches[k], out=out), 1, self.bench.options.repeats)
            moved = array.stats()["bytes_moved"] - before
        check(as_in_file(out, last), name)
        details |= {"pieces": len(last), "cache_bytes": self.nbytes // 8, "moved_gb": moved / 1e9}
        self.bench.tell(name, nbytes, ours, "KvikIO, a call for each piece", theirs, details)

    def bench_sequential(self) -> None:
        name = "file.kvikio.sequential"
        theirs_to = self.cupy.zeros((len(self.all), WORDS), dtype=self.cupy.int64)

        def right() -> bool:
            same = as_in_file(torch.as_tensor(theirs_to, device=DEVICE), self.all)
            theirs_to.fill(0)
            return same

        theirs, details = self.by_kvikio(name, False, lambda f, k: f.read(theirs_to), right, self.nbytes)
        with self.open() as array:
            ours = timed(lambda k: array[:], 1, self.bench.options.repeats)
            check(as_in_file(array[:], self.all), name)
        details |= {"cache_bytes": self.nbytes // 8}
        self.bench.tell(name, self.nbytes, ours, "KvikIO, one call for the file", theirs, details)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--gib", type=float, default=1, help="of the file")
    parser.add_argument("--pieces", type=int, default=1 << 16, help="of a repeat")
    parser.add_argument("--threads", default="1,8,16", help="of KvikIO's pool, each tried")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the file is made, and removed")
    options = parser.parse_args()
    load_kvikio()
    if not torch.cuda.is_available():
        raise SystemExit("kvikio_reads.py needs a GPU: KvikIO reads into the memory of one")
    bench = Bench(options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, nbytes = Path(folder) / "large", int(options.gib * (1 << 30)) // PIECE * PIECE
        make_file(path, nbytes)
        reads = Reads(bench, path, nbytes)
        reads.bench_pieces()
        reads.bench_sequential()


if __name__ == "__main__":
    main()
