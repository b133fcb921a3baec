"""Frames with a column of each type, and tables of them; rows of results beside those of frames."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.columns import convert, open_table
from places import DEVICES

pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ROWS = 5000  # more than two zones, and not whole ones


def frame_of(rows: int = ROWS, seed: int = 1) -> Any:
    """A column of each type, most of them with nulls."""
    draw = np.random.default_rng(seed)
    whole = {
        f"{kind}{width}": draw.integers(0 if kind == "u" else -100, 100, rows).astype(f"{kind}{width // 8}")
        for kind in "iu"
        for width in (8, 16, 32, 64)
    }
    frame = pl.DataFrame(
        {
            **whole,
            "f64": np.round(draw.normal(0, 50, rows), 3),
            "f32": draw.normal(0, 50, rows).astype(np.float32),
            "cents": np.round(draw.gamma(1.0, 30.0, rows), 2),
            "nan": np.where(draw.random(rows) < 0.2, np.nan, draw.integers(-3, 3, rows)),
            "flag": draw.random(rows) < 0.5,
            "text": draw.choice(["north", "south", "east", "west"], rows),
            "day": np.datetime64("2019-12-25") + draw.integers(0, 800, rows).astype("timedelta64[D]"),
            "time": np.datetime64("2019-12-25T00:00:00", "us")
            + draw.integers(0, 10**14, rows).astype("timedelta64[us]"),
            "sorted": np.arange(rows) // 3,
        }
    )
    some = [
        pl.when(pl.Series(draw.random(rows) < 0.15)).then(None).otherwise(pl.col(name)).alias(f"{name}_n")
        for name in ("i32", "f64", "flag", "text", "day", "i8")
    ]
    return frame.with_columns(some)


def written(frame: Any, folder: Path, how: str) -> Any:
    """What open_table takes."""
    match how:
        case "stream":
            return frame
        case "folder":
            convert(frame, folder / "table")
            return folder / "table"
        case "parquet":
            frame.write_parquet(folder / "table.parquet")
            return folder / "table.parquet"
        case _:
            table = pa.table(frame)
            for name in ("text", "text_n"):
                at = table.schema.get_field_index(name)
                table = table.set_column(at, name, table[name].dictionary_encode().unify_dictionaries())
            path = folder / "table.arrow"
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=1500)
            return path


def same(ours: Any, theirs: Any, order: bool = True, tolerance: float = 1e-12) -> None:
    """Rows of a result and of a frame."""
    mine, other = ours.rows(), theirs.rows()
    assert [*ours] == theirs.columns
    if not order:
        mine, other = sorted(mine, key=repr), sorted(other, key=repr)
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        for x, y in zip(a, b, strict=True):
            if isinstance(y, float) and x is not None:
                both_nan = math.isnan(x) and math.isnan(y)
                assert both_nan or math.isclose(x, y, rel_tol=tolerance, abs_tol=1e-9), (a, b)
            else:
                assert x == y, (a, b)


def opened(frame: Any, folder: Path) -> list[Any]:
    """The same rows as tables of two placements, on each device."""
    sources: Any = [(written(frame, folder, "folder"), "host"), (written(frame, folder, "ipc"), "storage")]
    return [
        open_table(source, executor="cuda" if "cuda" in str(device) else "cpu", placement=where)
        for device in DEVICES
        for source, where in sources
    ]
