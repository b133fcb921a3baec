"""What the taxi queries Q0 to Q5 move, beside a thread per row and whole columns.

    python benchmarks/taxi_lines.py --results columns.jsonl [--rows 100000000] [--executor cuda]
        [--folder /tmp] [--queries 0,5]

Columns of 8-byte doubles, read through a cache of an eighth of their bytes, without zone maps.
`taxi.q5.lines` and the like: a query, line by line, beside a kernel whose threads each take a row and read
a[i] through caches of the same size (Figure 7.12 of the dissertation), over files in the page cache.
`taxi.q5.drives`: over one and four modelled P5800X, beside the same columns read whole (Section 7.2 there).
Each with lines of 512 B and 4 KiB, and trips of at least 30 and 20 miles. `details.columns` has for each
column the bytes of the values that the answer needs, of the 32-byte sectors and of the lines that they lie
in; `amplification` is what was moved, or would be by sectors or lines, over the least. Answers are compared
with NumPy's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from penstock.columns import Table, col, open_table, taxi
from penstock.columns.results import Account
from taxi_queries import Answer, check, numpys, timed, write

BLOCK = 256
SECTOR = 32
NAMES = (taxi.DISTANCE, *taxi.METRICS)
A_ROW_EACH = """
using column = penstock::array<const double>;
using u64 = unsigned long long;
extern "C" __global__ void a_row_each(column miles, column total, column surcharge, column ehail,
                                      column tolls, column tax, int columns, double least, double* sums,
                                      u64* rows) {
  double driven = 0, made = 0;
  u64 found = 0;
  for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < miles.size(); i += gridDim.x * blockDim.x) {
    const double mile = miles[i];
    if (!(mile >= least)) continue;
    ++found;
    driven += mile;
    if (columns > 0) made += total[i];
    if (columns > 1) made -= surcharge[i];
    if (columns > 2) made -= ehail[i];
    if (columns > 3) made -= tolls[i];
    if (columns > 4) made -= tax[i];
  }
  if (found == 0) return;
  atomicAdd(sums, driven);
  atomicAdd(sums + 1, made);
  atomicAdd(rows, found);
}
"""


class RowEach:
    """A query as a kernel in which each thread takes rows and reads what it needs of them."""

    def __init__(self, executor: str, files: dict[str, Path], rows: int, line: int, stack: ExitStack) -> None:
        self.kernel = penstock.kernel(A_ROW_EACH, "a_row_each", device=executor)
        how = {"placement": "storage", "device": executor, "dtype": np.float64, "shape": (rows,)}
        self.arrays = [
            stack.enter_context(penstock.open(files[name], cache=rows, line=line, **how)) for name in NAMES
        ]
        facts = self.kernel.report(BLOCK)
        self.grid = facts["units"] * (facts["blocks_per_unit"] or 1)
        self.sums, self.found = _zeros(executor, "float64", 2), _zeros(executor, "uint64", 1)

    def __call__(self, number: int, miles: float) -> Answer:
        self.sums[:] = 0
        self.found[:] = 0
        out = (self.sums, self.found)
        self.kernel(*self.arrays, number, miles, *out, grid=self.grid, block=BLOCK).wait()
        driven, made, rows = float(self.sums[0]), float(self.sums[1]), int(self.found[0])
        return rows, made / driven if number else driven / rows


def _zeros(executor: str, dtype: str, count: int) -> Any:
    if executor == "cpu":
        return np.zeros(count, dtype)
    import torch

    return torch.zeros(count, dtype=getattr(torch, dtype), device="cuda")


class Lines:
    """Of one table of trips."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder / "trips"
        taxi.make(self.folder, options.rows, columns="needed", pack=False)
        stored = taxi.COLUMNS_OF["needed"]
        self.files = {name: self.folder / f"{k:04d}.values" for k, name in enumerate(stored)}
        self.answers: dict[tuple[int, float], Answer] = {}

    def run(self) -> None:
        for line in (512, 4096):
            with ExitStack() as stack:
                table = stack.enter_context(self.table(line))
                each = RowEach(self.options.executor, self.files, self.options.rows, line, stack)
                self.measure("lines", "file", 1, table, "a thread per row", each)
            for drives in (1, 4):
                with self.table(line, media="p5800x", drives=drives) as table:
                    self.measure("drives", "p5800x", drives, table, "whole columns", partial(whole, table))

    def table(self, line: int, **how: Any) -> Table:
        options = self.options
        return open_table(
            self.folder, executor=options.executor, placement="storage", cache=6 * options.rows, line=line,
            zone_maps=False, threads=0 if options.executor == "cuda" else options.threads, **how,
        )  # fmt: skip

    def measure(self, figure: str, media: str, drives: int, table: Table, baseline: str, other: Any) -> None:
        for miles in (30.0, 20.0):
            for number in self.options.queries:
                if (number, miles) not in self.answers:
                    self.answers[number, miles] = numpys(self.folder, self.options.rows, number, miles)
                taken, result = timed(taxi.query(table, number, miles).collect, self.options.repeats)
                average, count = result.rows()[0]
                beside, answer = timed(partial(other, number, miles), self.options.repeats)
                answers = {"numpy": self.answers[number, miles], "lines": (count, average), baseline: answer}
                check(answers, f"Q{number} of {miles:g} miles, {media}")
                details = moved(table, number, miles, result.account)
                params = {"media": media, "drives": drives, "line": table.line_bytes, "miles": miles}
                self.note(f"taxi.q{number}.{figure}", params, taken, baseline, beside, details)

    def note(
        self, figure: str, params: dict[str, Any], taken: list[float], baseline: str, beside: list[float],
        details: dict[str, Any],
    ) -> None:  # fmt: skip
        number = int(figure[len("taxi.q")])
        nbytes = 8 * self.options.rows * (1 + number)
        mine, theirs = statistics.median(taken), statistics.median(beside)
        line = {
            "id": figure, "value": nbytes / mine / 1e9, "unit": "GB/s", "repeats": len(taken),
            "baseline": baseline, "baseline_value": nbytes / theirs / 1e9, "ratio": theirs / mine,
            "spread": (max(taken) - min(taken)) / mine, "verified": True,
            "params": {"rows": self.options.rows, "executor": self.options.executor,
                       "threads": self.options.threads, **params},
            "details": details | {"seconds": mine, "baseline_seconds": theirs},
        }  # fmt: skip
        write(self.options, line)
        shares = " ".join(f"{way} {share:.2f}" for way, share in details["amplification"].items())
        how = f"{params['miles']:g} miles, {params['drives']} {params['media']}, lines of {params['line']}"
        print(f"{figure} {how}: {mine * 1e3:.1f} ms, {baseline} {theirs / mine:.2f}x; {shares}", flush=True)


def whole(table: Table, number: int, miles: float) -> Answer:
    """The same answer of columns that are read whole: rows that do not count have a weight of 0."""
    counts = (col(taxi.DISTANCE) >= miles).cast(float)
    sums = [(col(name) * counts).sum().alias(name) for name in NAMES[: 1 + number]]
    found = dict(
        zip(
            (*NAMES[: 1 + number], "rows"),
            table.agg(*sums, rows=counts.sum()).collect().rows()[0],
            strict=True,
        )
    )
    driven, rows = found[taxi.DISTANCE], int(found["rows"])
    made = sum((1 if name == NAMES[1] else -1) * found[name] for name in NAMES[1 : 1 + number])
    return rows, made / driven if number else driven / rows


def moved(table: Table, number: int, miles: float, account: Account) -> dict[str, Any]:
    """Bytes by column, and what is moved over what the answer needs."""
    names = NAMES[1 : 1 + number]
    condition = table.filter(col(taxi.DISTANCE) >= miles)
    touched = dict(zip(names, condition.touched(names), strict=True))
    filtered = 8 * table.rows
    columns = {taxi.DISTANCE: {"least": filtered, "sectors": filtered, "lines": filtered}}
    columns |= {
        name: {"least": least, "sectors": sectors * SECTOR, "lines": lines * table.line_bytes}
        for name, (least, sectors, lines) in touched.items()
    }
    total = {way: sum(column[way] for column in columns.values()) for way in ("least", "sectors", "lines")}
    amplification = {way: total[way] / total["least"] for way in ("sectors", "lines")}
    return {
        "rows_met": account.rows_met, "bytes_moved": account.bytes_moved, "columns": columns,
        "amplification": {"moved": account.bytes_moved / total["least"], **amplification},
        "set_up_seconds": account.set_up_seconds, "run_seconds": account.run_seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU executor; 0: one per core")
    parser.add_argument("--queries", type=numbers, default="0,1,2,3,4,5", help="which of 0 to 5")
    parser.add_argument(
        "--folder", default=tempfile.gettempdir(), help="where the table is made, and removed"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        Lines(options, Path(folder)).run()


def numbers(given: str) -> list[int]:
    return [int(number) for number in given.split(",")]


if __name__ == "__main__":
    main()
