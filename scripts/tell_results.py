"""Tells the measurements of a file of JSON lines in a line each, and the whole in a last one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FIGURES = (
    "evicting_share",
    "frame_wait_share",
    "write_amplification",
    "commands_per_line",
    "drive_writes_per_day",
    "operations",
    "of_ideal",
    "tickets_used",
)


def words_of(line: dict[str, Any]) -> str:
    details = line["details"]
    parts = [f"{name} {details[name]:.4g}" for name in FIGURES if details.get(name) is not None]
    return f"{name_of(line)} {line['value']:.4g} {line['unit']}; " + ", ".join(parts)


def name_of(line: dict[str, Any]) -> str:
    params = line["params"]
    parts = [line["id"], params.get("access"), params.get("preset"), params.get("media")]
    ratio = "" if line["ratio"] is None else f" {line['ratio']:.2f}"
    return " ".join(part for part in parts if part and part != "none") + ratio


def main(path: str) -> None:
    lines = [json.loads(text) for text in Path(path).read_text(encoding="utf-8").splitlines()]
    for line in lines:
        print(words_of(line))
    if len(lines) > 1:
        print("ratios: " + ", ".join(map(name_of, lines)))


if __name__ == "__main__":
    main(sys.argv[1])
