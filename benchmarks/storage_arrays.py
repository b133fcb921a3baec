"""Arrays on storage, behind a cache in GPU memory: rows by a power law, and the training of a table.

    python benchmarks/storage_arrays.py --results storage.jsonl [--only zipf,embedding] [--gib 8]

Needs a GPU and torch. The file lies in the page cache of the machine: what is measured is the cache, the
queues and the CPU threads that copy, not a drive. Baselines: for rows the same file mapped and gathered by
torch on the CPU, then copied to the GPU, and KvikIO and cuFile; for training the same table in HBM (here
and in torch), and torch on the CPU. Rows are compared bit for bit, losses with those of the table in HBM.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.nn
import penstock.optim
import torch
from array_bench import Bench, check, timed

WIDTH = 128  # float32: rows of 512 bytes
EXPONENT = 1.05


class PowerLaw:
    """Row numbers of which the k-th most frequent has a share of k^-1.05, in no order."""

    def __init__(self, rows: int) -> None:
        generator = torch.Generator(device="cuda").manual_seed(1)
        ranks = torch.arange(1, rows + 1, device="cuda", dtype=torch.float64)
        self.shares = torch.cumsum(ranks**-EXPONENT, 0)
        self.order = torch.randperm(rows, device="cuda", generator=generator)

    def batch(self, count: int, seed: int) -> torch.Tensor:
        generator = torch.Generator(device="cuda").manual_seed(seed)
        drawn = torch.rand(count, device="cuda", dtype=torch.float64, generator=generator) * self.shares[-1]
        return self.order[torch.searchsorted(self.shares, drawn).clamp_(max=len(self.order) - 1)]


def make_file(path: Path, nbytes: int) -> int:
    """Small numbers, drawn on the GPU. Its rows."""
    rows = nbytes // (4 * WIDTH)
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, WIDTH))
    generator = torch.Generator(device="cuda").manual_seed(2)
    step = 1 << 20
    for first in range(0, rows, step):
        last = min(first + step, rows)
        drawn = torch.randn((last - first, WIDTH), device="cuda", generator=generator)
        table[first:last] = (drawn * 0.1).cpu().numpy()
    del table
    return rows


def bench_zipf(bench: Bench, path: Path, law: PowerLaw, rows: int) -> None:
    count = bench.options.rows
    batches = [law.batch(count, seed) for seed in range(100, 100 + 2 * bench.options.repeats + 8)]
    mapped = torch.from_numpy(np.load(path, mmap_mode="c"))
    pinned = torch.empty((count, WIDTH), pin_memory=True)
    near = torch.empty((count, WIDTH), device="cuda")

    def on_the_cpu(batch: torch.Tensor) -> torch.Tensor:
        torch.index_select(mapped, 0, batch.cpu(), out=pinned)
        return near.copy_(pinned, non_blocking=True)

    theirs = timed(lambda k: on_the_cpu(batches[k]), 2, bench.options.repeats)
    cache = rows * WIDTH * 4 // 10
    out = torch.empty_like(near)
    for line in (512, 4096):
        with penstock.open(path, placement="storage", cache=cache, line=line) as array:
            for k in (0, 1):
                check(
                    torch.equal(array.gather(batches[k], out=out), on_the_cpu(batches[k])),
                    "gather.storage.zipf",
                )
            for k in range(2, 8):
                array.gather(batches[k], out=out)  # the cache becomes what it stays
            before = array.stats()
            ours = timed(lambda k, a=array: a.gather(batches[8 + k], out=out), 0, bench.options.repeats)
            after = array.stats()
            took = {name: after[name] - before[name] for name in ("misses", "joins", "fills", "bytes_moved")}
            asked = count * bench.options.repeats  # of one line each
            check(torch.equal(out, on_the_cpu(batches[7 + bench.options.repeats])), "gather.storage.zipf")
            details = {
                "line_bytes": line,
                "cache_bytes": cache,
                "hit_rate": 1 - took["fills"] / asked,
                "moved_gb": took["bytes_moved"] / 1e9,
                **took,
            }
            name = "warm mmap + index_select + copy"
            bench.tell(f"gather.storage.zipf.line{line}", out.nbytes, ours, name, theirs, details)
    with penstock.open(path, placement="host") as array:
        check(torch.equal(array.gather(batches[0], out=out), on_the_cpu(batches[0])), "gather.storage.zipf")
        in_place = timed(lambda k: array.gather(batches[8 + k], out=out), 0, bench.options.repeats)
        bench.tell("gather.host.zipf", out.nbytes, in_place, "warm mmap + index_select + copy", theirs, {})


def bench_readers(bench: Bench, path: Path, law: PowerLaw, rows: int) -> None:
    """The same rows, fewer of them, each read into GPU memory by a call of KvikIO: with the threads that it
    has itself, and by cuFile, where that takes files of this machine."""
    if importlib.util.find_spec("kvikio") is None:
        print("gather.storage.zipf.kvikio SKIPPED: kvikio is not installed (pip install kvikio-cu13)")
        return
    import kvikio
    import kvikio.defaults

    count, repeats = bench.options.read_rows, bench.options.repeats
    batches = [law.batch(count, seed) for seed in range(300, 301 + repeats)]
    begin = path.stat().st_size - rows * WIDTH * 4
    offsets = [(begin + batch.cpu() * WIDTH * 4).tolist() for batch in batches]
    out = torch.empty((count, WIDTH), device="cuda")
    buffers = list(out.unbind())
    mapped = torch.from_numpy(np.load(path, mmap_mode="c"))
    with penstock.open(path, placement="storage", cache=rows * WIDTH * 4 // 10, line=512) as array:
        for seed in range(100, 108):
            array.gather(law.batch(bench.options.rows, seed))
        ours = timed(lambda k: array.gather(batches[k], out=out), 1, repeats)
        check(torch.equal(out.cpu(), mapped[batches[repeats].cpu()]), "gather.storage.zipf.readers")
    for name, mode in ("kvikio", kvikio.CompatMode.ON), ("cufile", kvikio.CompatMode.OFF):
        # Else what is shorter than 16 KiB is read by whoever waits for it, one after the other.
        threads = {"compat_mode": mode, "gds_threshold": 0, "num_threads": bench.options.reader_threads}
        try:
            with kvikio.defaults.set(threads), kvikio.CuFile(path, "r") as file:

                def read(k: int, file: Any = file) -> None:
                    asked = [file.pread(b, WIDTH * 4, at) for b, at in zip(buffers, offsets[k], strict=True)]
                    for one in asked:
                        one.get()

                theirs = timed(read, 1, repeats)
        except RuntimeError as refused:
            print(f"gather.storage.zipf.{name} SKIPPED: {refused}")
            continue
        check(torch.equal(out.cpu(), mapped[batches[repeats].cpu()]), f"gather.storage.zipf.{name}")
        details = {"kvikio": kvikio.__version__, "threads": bench.options.reader_threads, "rows": count}
        baseline = f"{name}, a call for each row"
        bench.tell(f"gather.storage.zipf.{name}", out.nbytes, ours, baseline, theirs, details)


class Trainer:
    """One step: rows of a table, a linear layer, a squared loss, and the rows changed."""

    def __init__(self, table: Any, optimizer: Any, device: str) -> None:
        self.table, self.optimizer = table, optimizer
        self.weight = torch.linspace(-1, 1, WIDTH, device=device)
        self.losses: list[float] = []

    def step(self, batch: torch.Tensor, ahead: torch.Tensor | None = None) -> None:
        self.optimizer.zero_grad()
        loss = ((self.table(batch) @ self.weight - 1) ** 2).mean()
        if ahead is not None:
            self.table.prefetch(ahead)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())


def train(
    trainer: Trainer, batches: list[torch.Tensor], warm: int, ahead: bool = False, run: int = 1
) -> list[float]:
    """Seconds of a step, on average over each `run` of them: what is still to be done after a step, for the
    next or beside it, belongs to the run, and the last step's to its end."""

    def steps(k: int) -> None:
        for n in range(warm + k * run, warm + (k + 1) * run):
            trainer.step(batches[n], batches[n + 1] if ahead else None)

    for n in range(warm):
        trainer.step(batches[n], batches[n + 1] if ahead else None)
    torch.cuda.synchronize()
    return [seconds / run for seconds in timed(steps, 0, (len(batches) - warm - 1) // run)]


def bench_embedding(bench: Bench, path: Path, law: PowerLaw, rows: int) -> None:
    whole = torch.from_numpy(np.load(path, mmap_mode="c"))
    for count in (int(word) for word in bench.options.batches.split(",")):
        bench_steps(bench, path, whole, law, count)


def bench_steps(bench: Bench, path: Path, whole: torch.Tensor, law: PowerLaw, count: int) -> None:
    """Steps of `count` rows each."""
    # As many as fill the cache: from then on lines are brought in, evicted and written back at one rate.
    warm = max(40, (20 << 20) // count)
    run = bench.options.steps
    batches = [law.batch(count, seed) for seed in range(200, 200 + warm + run * bench.options.repeats + 1)]
    nbytes = count * WIDTH * 4

    table = torch.nn.Embedding(len(whole), WIDTH, sparse=True, device="meta")
    table.weight = torch.nn.Parameter(whole.cuda())
    trainer = Trainer(table, torch.optim.SGD(table.parameters(), lr=0.05), "cuda")
    torch_hbm = train(trainer, batches, warm, run=run)
    del table, trainer
    torch.cuda.empty_cache()

    with penstock.from_tensor(whole.cuda(), "hbm") as array:
        torch.cuda.empty_cache()
        near = penstock.nn.Embedding.from_pretrained(array, freeze=False)
        trainer = Trainer(near, penstock.optim.SGD(near, lr=0.05), "cuda")
        ours_hbm = train(trainer, batches, warm, run=run)
        expected = torch.stack(trainer.losses).cpu()
    ratio = statistics.median(ours_hbm) / statistics.median(torch_hbm)
    bench.tell(f"embedding.step.hbm.{count}", nbytes, ours_hbm, "torch in HBM", torch_hbm, {"slower": ratio})

    few = batches[: 3 + bench.options.repeats + 1]
    table = torch.nn.Embedding(len(whole), WIDTH, sparse=True, _weight=whole.clone())
    on_cpu = Trainer(table, torch.optim.SGD(table.parameters(), lr=0.05), "cpu")
    torch_cpu = train(on_cpu, [batch.cpu() for batch in few], 3)
    del table, on_cpu

    for ahead in (False, True):
        trained = path.with_name("penstock_trained.npy")
        trained.unlink(missing_ok=True)
        np.save(trained, whole.numpy())
        with penstock.open(
            trained, placement="storage", writable=True, cache=bench.options.cache, line=bench.options.line
        ) as array:
            far = penstock.nn.Embedding.from_pretrained(array, freeze=False)
            trainer = Trainer(far, penstock.optim.SGD(far, lr=0.05), "cuda")
            train(trainer, batches[: warm + 1], 0, ahead)
            before = array.stats()
            ours = train(trainer, batches[warm:], 0, ahead, run)
            after = array.stats()
            parts = steps_of_resident_rows(array, batches[-1])
            torch.testing.assert_close(torch.stack(trainer.losses).cpu(), expected, rtol=1e-4, atol=1e-6)
        trained.unlink()
        moved = ("fills", "write_backs", "write_commands", "prefetches", "bytes_moved", "bytes_written")
        details = {
            "prefetched": ahead,
            "slower_than_hbm": statistics.median(ours) / statistics.median(ours_hbm),
            "slower_than_torch_in_hbm": statistics.median(ours) / statistics.median(torch_hbm),
            "faster_than_torch_on_cpu": statistics.median(torch_cpu) / statistics.median(ours),
            "step_ms": statistics.median(ours) * 1e3,
            "line_bytes": bench.options.line,
            **parts,
            "per_step": {name: (after[name] - before[name]) / (len(ours) * run) for name in moved},
        }
        name = "embedding.step.ahead" if ahead else "embedding.step"
        bench.tell(f"{name}.{count}", nbytes, ours, "the same in HBM", ours_hbm, details)


def steps_of_resident_rows(array: Any, rows: torch.Tensor) -> dict[str, float]:
    """What is left of a step where nothing is brought in: the rows gathered, and added to."""
    nothing = torch.zeros((len(rows), WIDTH), device="cuda")
    gathered = timed(lambda k: array.gather(rows), 1, 5)
    added = timed(lambda k: array.scatter(rows, nothing, reduce="add"), 1, 5)
    return {"gather_ms": statistics.median(gathered) * 1e3, "add_ms": statistics.median(added) * 1e3}


TOPICS = {"zipf": bench_zipf, "readers": bench_readers, "embedding": bench_embedding}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--only", default=",".join(TOPICS))
    parser.add_argument("--gib", type=float, default=8)
    parser.add_argument("--rows", type=int, default=1 << 20, help="of a gather")
    parser.add_argument("--read-rows", type=int, default=1 << 14, help="of a gather by KvikIO and cuFile")
    parser.add_argument("--reader-threads", type=int, default=1, help="of KvikIO: more are slower for 512 B")
    parser.add_argument("--batches", default="16384,65536,262144", help="rows of a training step")
    parser.add_argument("--cache", default="1GiB", help="of the trained table")
    parser.add_argument("--line", type=int, default=512, help="of the trained table")
    parser.add_argument("--steps", type=int, default=8, help="of a run that is timed as one")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--folder",
        default="/dev/shm",
        help="where the files are made; on a drive, stores wait for it once the kernel has many dirty pages",
    )
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("storage_arrays.py needs a GPU: its cache lies in the memory of one")
    bench = Bench(options)
    path = Path(options.folder) / "penstock_storage.npy"
    try:
        rows = make_file(path, int(options.gib * (1 << 30)))
        law = PowerLaw(rows)
        for name in options.only.split(","):
            TOPICS[name](bench, path, law, rows)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
