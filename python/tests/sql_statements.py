"""Small tables with nulls and extremes in each column, and statements over them that DuckDB answers, too."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
csv: Any = pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")

FOLDER = Path(__file__).parent / "sql"


NUMBERS_OR_NOT = [
    "1_000", "1__0", "_1", "1_", "1e_2", "\u0663", "\u00a08", "0x1F", "0b11", " 12\t", "1e3", "5.5", "+5",
    "--5", "inf", ".5", "12.", ".", "1e400", "9223372036854775808", "yes", "TRUE", "2", "", None,
]  # fmt: skip


def statements() -> list[str]:
    """Of all files; an indented line belongs to the one before."""
    found = [path.read_text().replace("\n  ", " ").splitlines() for path in sorted(FOLDER.glob("*.sql"))]
    return [line for lines in found for line in lines if line and not line.startswith("--")]


def small(name: str, **kinds: Any) -> Any:
    """Of a CSV file, whose texts are quoted."""
    nulls = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    options = csv.ConvertOptions(column_types=kinds, **nulls)
    return csv.read_csv(FOLDER / f"{name}.csv", convert_options=options)


def trips() -> Any:
    """6000 rows of types that the others do not have, which need more than one zone."""
    draw, rows = np.random.default_rng(1), 6000

    def some(values: Any, kind: Any, share: float = 0.1) -> Any:
        return pa.array(list(values), kind, mask=draw.random(rows) < share)

    def whole(low: int, high: int) -> Any:
        return draw.integers(low, high, rows)

    second, moment = 10**6, 1_700_000_000
    words = np.array(["a", "b", "c", "dd", "e e", "", "ß"])
    large, small = whole(-(10**12), 10**12).tolist(), whole(-999, 999).tolist()
    return pa.table(
        {
            "i": np.arange(rows),
            "f4": some((whole(-50, 50) / 8 + 0.1).tolist(), pa.float32()),
            "u64": some(whole(0, 50).tolist(), pa.uint64()),
            "ub": some([2**63 - 1 - each for each in whole(0, 9).tolist()], pa.uint64()),
            "far": some((whole(-9, 9) * 10**17).tolist(), pa.int64()),
            "ns": some((moment * 10**9 + whole(0, 40) * 86400 * 10**9).tolist(), pa.timestamp("ns")),
            "ms": some((moment * 1000 + whole(-40, 40) * 3600000).tolist(), pa.timestamp("ms")),
            "sec": some((whole(-40, 40) * 3600 * 7).tolist(), pa.timestamp("s")),
            "utc": some((moment * second + whole(0, 40) * 3600 * second).tolist(), pa.timestamp("us", "UTC")),
            "d18": some([Decimal(each).scaleb(-6) for each in large], pa.decimal128(18, 6)),
            "d4": some([Decimal(each).scaleb(-1) for each in small], pa.decimal128(4, 1)),
            "i16": some(whole(-300, 300).tolist(), pa.int16()),
            "x": some(draw.random(rows).round(3).tolist(), pa.float64()),
            "z": some(words[whole(0, 7)].tolist(), pa.string()).dictionary_encode(),
            "p": some(whole(0, 2000).tolist(), pa.int32()),
            "tf": some((draw.random(rows) < 0.5).tolist(), pa.bool_(), 0.3),
        }
    )


def zones() -> Any:
    numbers = range(667)
    return pa.table(
        {
            "p": [3 * k for k in numbers],
            "nm": [f"n{k % 17}" if k % 5 else None for k in numbers],
            "q": pa.array([Decimal(k).scaleb(-2) if k % 7 else None for k in numbers], pa.decimal128(9, 2)),
            "dd": [dt.date(2023, 11, 15) + dt.timedelta(days=k % 60) for k in numbers],
        }
    )


def tables() -> dict[str, Any]:
    """By the names that statements have for them."""
    nothing = {"a": pa.int64(), "x": pa.float64(), "s": pa.string(), "dd": pa.date32()}
    sales = small(
        "sales", k=pa.int32(), d=pa.decimal128(10, 2), e=pa.decimal128(6, 3), f=pa.float64(), i8=pa.int8(),
        u8=pa.uint8(), day=pa.date32(), ts=pa.timestamp("us"), t=pa.string(),
    )  # fmt: skip
    kinds = {"cid": pa.int32(), "credit": pa.decimal128(8, 1), "since": pa.date32()}
    return {
        "s": sales,
        "e": sales.slice(0, 0),
        "c": small("customers", **kinds),
        "r": pa.table(
            {
                "region": ["north", "south", "east", "west", "void"],
                "boss": ["nn", None, "ee", "ww", "vv"],
                "quota": [10, 20, None, 40, 50],
            }
        ),
        "n": pa.table({**{name: pa.nulls(3, kind) for name, kind in nothing.items()}, "m": [1, 2, 3]}),
        "o": pa.table({"v": [1]}),
        "odd": pa.table({"w": NUMBERS_OR_NOT}),
        "ends": pa.table({"one": [7, 7, 7, 7], "end": [0, 2**63 - 1, 5, 2**63 - 2], "v": [10, 20, 30, 40]}),
        "w": trips(),
        "dim": zones(),
    }
