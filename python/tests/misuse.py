"""Calls that users make by mistake, drawn at random: of arrays that are closed, moved, cut short, read-only,
forked from, on another device, with keys and values of any kind. Each gives what NumPy gives, or raises one
sentence.

    python misuse.py CALLS [SEED] [DEVICE]
"""

from __future__ import annotations

import gc
import operator
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch
from places import small_cache

ROWS, WIDTH = 300, 5
TAKEN = (ValueError, TypeError, IndexError, KeyError, OSError, BufferError, MemoryError)
ONE_SENTENCE = re.compile(r"[^\n]{5,600}")
END_OF_SENTENCE = re.compile(r"[.!?] [A-Z]")


OPEN: Any = penstock.open  # with arguments of any type
IADD: Any = operator.iadd


class Subject:
    """An array, NumPy's copy of what it should hold, and what has happened to it."""

    def __init__(self, draw: random.Random, folder: Path, device: str) -> None:
        self.draw, self.device = draw, device
        self.expected = np.arange(ROWS * WIDTH, dtype=np.float64).reshape(ROWS, WIDTH)
        self.unknown = False  # whether what it holds is the user's fault to have lost
        self.path: Path | None = None
        self.memory: Any = None
        kinds = [self.file, self.file, self.tensor, self.numpy, self.read_only_map]
        self.array: Any = draw.choice(kinds)(folder)

    def file(self, folder: Path) -> Any:
        self.path = folder / f"{self.draw.getrandbits(60)}.npy"
        np.save(self.path, self.expected)
        placements = ["host", "host-cached", "storage"] + (["hbm"] if self.device == "cuda" else [])
        placement = self.draw.choice(placements)
        writable = self.draw.random() < 0.5 and (placement == "storage" or self.device == "cpu")
        how: dict[str, Any] = small_cache(placement)
        return penstock.open(self.path, placement=placement, device=self.device, writable=writable, **how)

    def placement(self) -> str:
        return self.draw.choice(["host", "host-cached"] + (["hbm"] if self.device == "cuda" else []))

    def tensor(self, folder: Path) -> Any:
        self.memory = torch.from_numpy(self.expected).clone()
        return penstock.from_tensor(self.memory, self.placement(), device=self.device)

    def numpy(self, folder: Path) -> Any:
        self.memory = self.expected.copy()
        return penstock.from_tensor(self.memory, self.placement(), device=self.device)

    def read_only_map(self, folder: Path) -> Any:
        self.path = folder / f"{self.draw.getrandbits(60)}.npy"
        np.save(self.path, self.expected)
        self.memory = torch.from_numpy(np.load(self.path, mmap_mode="r"))
        return penstock.from_tensor(self.memory, self.placement(), device=self.device)

    # What happens to it

    def close(self) -> None:
        self.array.close()

    def move(self) -> None:
        if self.may_be_resized():
            self.draw.choice([self.memory.share_memory_, lambda: self.memory.resize_(2 * ROWS, WIDTH)])()
        elif isinstance(self.memory, np.ndarray):
            self.memory.resize((2 * ROWS, WIDTH), refcheck=False)

    def may_be_resized(self) -> bool:
        """torch 2.13 itself crashes when it resizes a shared storage."""
        if not isinstance(self.memory, torch.Tensor):
            return False
        storage = self.memory.untyped_storage()
        return storage.resizable() and not storage.is_shared()

    def give_up(self) -> None:
        if self.may_be_resized():
            self.memory.untyped_storage().resize_(0)
            self.unknown = True
        elif isinstance(self.memory, np.ndarray) and self.memory.flags.owndata:
            self.memory.resize((1,), refcheck=False)
            self.unknown = True

    def cut_short(self) -> None:
        if self.path is not None:
            os.truncate(self.path, self.draw.choice([0, 100, 4096]))
            self.unknown = True

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        self.memory = None
        gc.collect(0)

    # Keys and values

    def key(self) -> Any:
        draw = self.draw
        numbers = [draw.randrange(-ROWS - 3, ROWS + 3) for _ in range(draw.randrange(4))]
        inside = [n for n in numbers if -ROWS <= n < ROWS]
        keys: list[Callable[[], Any]] = [
            lambda: numbers,
            lambda: inside,
            lambda: np.array(inside, np.int64),
            lambda: torch.tensor(inside, dtype=torch.int64),
            lambda: torch.tensor(numbers, dtype=draw.choice([torch.int32, torch.int16])),
            lambda: torch.tensor([abs(n) % 256 for n in numbers], dtype=torch.uint8),
            lambda: np.array(inside, np.float32),
            lambda: torch.tensor(inside, dtype=torch.float64),
            lambda: draw.randrange(-ROWS - 2, ROWS + 2),
            lambda: slice(
                draw.randrange(-400, 400), draw.randrange(-400, 400), draw.choice([None, 1, 3, -2])
            ),
            lambda: np.array([draw.random() < 0.5 for _ in range(draw.choice([ROWS, 3]))]),
            lambda: torch.rand(ROWS) < 0.1,
            lambda: draw.choice(
                [None, True, "rows", 1.5, {}, object(), 2**70, -(2**70), [[1], [2, 3]], ..., ()]
            ),
            lambda: np.array([2**63 + 5], np.uint64),
            lambda: torch.empty(2, 3, dtype=torch.int64, device="meta"),
            lambda: torch.tensor(inside).to_sparse() if inside else [],
            lambda: np.array(["a"]),
        ]
        return draw.choice(keys)()

    def values(self, shape: tuple[int, ...]) -> Any:
        draw = self.draw
        values: list[Callable[[], Any]] = [
            lambda: np.full(shape, 7.0),
            lambda: torch.full(shape, 8.0, dtype=torch.float64),
            lambda: torch.full(shape, 8.0),
            lambda: np.full((*shape, 2), 1.0),
            lambda: draw.choice(["x", None, 1j, [1, 2], object(), float("nan"), 10**400]),
            lambda: torch.full(shape, 3.0, dtype=torch.float64, device="meta"),
            lambda: 5.0,
        ]
        return draw.choice(values)()


class Trial:
    def __init__(self, seed: int, device: str, folder: Path) -> None:
        self.draw = random.Random(seed)
        self.device = device
        self.outcomes: Counter[str] = Counter()
        self.folder = folder
        self.subjects: list[Subject] = []

    def subject(self) -> Subject:
        if len(self.subjects) < 6 or self.draw.random() < 0.05:
            self.subjects.append(Subject(self.draw, self.folder, self.device))
        if len(self.subjects) > 12:
            gone = self.subjects.pop(self.draw.randrange(len(self.subjects)))
            if gone.path is not None:
                gone.path.unlink(missing_ok=True)
        return self.draw.choice(self.subjects)

    def wanted(self, s: Subject, key: Any) -> Any:
        """NumPy's answer; raises what NumPy raises."""
        if isinstance(key, torch.Tensor):
            key = key.numpy()
        return s.expected[np.asarray(key) if isinstance(key, list) and key else key]

    def checked(self, s: Subject, found: Any, wanted: Callable[[], Any]) -> None:
        if s.unknown:
            raise AssertionError("read what is not there any more")
        np.testing.assert_array_equal(
            np.asarray(found.cpu() if isinstance(found, torch.Tensor) else found), wanted()
        )

    def read(self, s: Subject) -> None:
        key = s.key()
        found = s.array[key]
        if not s.unknown:
            self.checked(s, found, lambda: self.wanted(s, key))

    def gather(self, s: Subject) -> None:
        rows = [self.draw.randrange(ROWS) for _ in range(3)]
        outs: list[Callable[[], Any]] = [
            lambda: None,
            lambda: torch.empty(3, WIDTH, dtype=torch.float64, device=self.device),
            lambda: torch.empty(3, WIDTH, dtype=torch.float64),
            lambda: torch.empty(3, WIDTH, dtype=torch.float64, device="meta"),
            lambda: torch.empty(3, WIDTH),
            lambda: torch.empty(WIDTH, 3, dtype=torch.float64).T,
            lambda: s.memory[:3] if isinstance(s.memory, torch.Tensor) and not s.unknown else None,
            lambda: np.empty((3, WIDTH)),
        ]
        found = s.array.gather(rows, out=self.draw.choice(outs)())
        if not s.unknown:
            self.checked(s, found, lambda: s.expected[rows])

    def store(self, s: Subject) -> None:
        row = self.draw.randrange(ROWS)
        values = s.values((1, WIDTH))
        if self.draw.random() < 0.5:
            s.array.scatter([row], values, reduce=self.draw.choice([None, None, "add", "max"]))
            if not s.unknown:
                self.relearn(s)
        else:
            s.array[[row]] = values
            s.expected[row] = np.asarray(values, np.float64)

    def relearn(self, s: Subject) -> None:
        """After an addition: what it holds now, if all other rows are as they were."""
        found = np.asarray(s.array[:].cpu())
        same = (found == s.expected) | (np.isnan(found) & np.isnan(s.expected))
        assert int((~same).any(axis=1).sum()) <= 1, "a store changed other rows"
        s.expected = found.copy()

    def misuse_wide(self, s: Subject) -> None:
        uses: list[Callable[[], Any]] = [
            lambda: torch.sum(s.array),
            lambda: s.array + 1,
            lambda: s.array.prefetch(s.key()),
            lambda: s.array.tensor()[0],
            lambda: np.asarray(s.array)[0],
            lambda: s.array.flush(),
            lambda: s.array.stats(),
            lambda: repr(s.array),
            lambda: torch.index_select(s.array, 0, torch.tensor([1, 2])),
            lambda: torch.nn.functional.embedding(torch.tensor([0, 299]), s.array),
            lambda: IADD(s.array, 1),
            lambda: penstock.gather_all([(s.array, [1]), (self.subject().array, [2])]),
            lambda: penstock.from_tensor(
                self.draw.choice([s.memory, None, "x", torch.empty(3, device="meta"), 3])
            ),
            lambda: OPEN(s.path, placement=self.draw.choice(["nowhere", "host", None]), device="cpu"),
            lambda: OPEN(
                s.path, device=self.draw.choice(["tpu", "cuda:99", 3, None]), line=self.draw.choice([3, "x"])
            ),
        ]
        self.draw.choice(uses)()

    def fork(self, s: Subject) -> None:
        """The child reads a row, and says how that went."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                found = np.asarray(s.array[[7]])
                status = 0 if s.unknown or np.array_equal(found, s.expected[[7]], equal_nan=True) else 3
            except TAKEN as problem:
                status = 0 if ONE_SENTENCE.fullmatch(str(problem)) else 4
            finally:
                os._exit(status)
        os.close(read)
        os.close(write)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"a forked process ended with status {status}"

    def step(self) -> None:
        s = self.subject()
        draw = self.draw.random()
        happenings = [s.close, s.move, s.move, s.give_up, s.cut_short, s.remove, s.forget]
        if draw < 0.03:
            action: Callable[[], Any] = self.draw.choice(happenings)
        elif draw < 0.035:
            action = lambda: self.fork(s)  # noqa: E731
        else:
            use = self.draw.choice([self.read, self.read, self.gather, self.store, self.misuse_wide])
            action = lambda: use(s)  # noqa: E731
        try:
            action()
            self.outcomes["done"] += 1
        except TAKEN as problem:
            text = str(problem.args[0]) if isinstance(problem, KeyError) else str(problem)
            if not ONE_SENTENCE.fullmatch(text) or END_OF_SENTENCE.search(text):
                raise AssertionError(f"not one sentence: {type(problem).__name__}: {text}") from problem
            self.outcomes[type(problem).__name__] += 1


def run(calls: int, seed: int, device: str) -> Counter[str]:
    """Raises AssertionError, with the seed and the step, for a wrong result or a message that is not one
    sentence."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        trial = Trial(seed, device, Path(folder))
        for k in range(calls):
            try:
                trial.step()
            except Exception as problem:
                raise AssertionError(f"misuse: seed {seed}, step {k}: {problem}") from problem
    return trial.outcomes


if __name__ == "__main__":
    calls, seed, device = (*sys.argv[1:], *("100000", "1", "cpu")[len(sys.argv) - 1 :])
    print(dict(run(int(calls), int(seed), device)))
