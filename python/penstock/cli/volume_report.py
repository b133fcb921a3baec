"""Volumes, what is on them and what is wrong with them, as tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from penstock.sizes import format_bytes

TABLE = "table.json"
TOLD_FINDINGS = 20


def entries_of(facts: Any) -> list[dict[str, Any]]:
    """What was imported, by name: a folder's files together."""
    entries: dict[str, dict[str, Any]] = {}
    for file in facts["files"]:
        item = entries.setdefault(
            file["entry"],
            {"name": file["entry"], "kind": "file", "dtype": None, "shape": None, "bytes": 0, "files": []},
        )
        item["bytes"] += file["bytes"]
        dtype = None if file["dtype"] is None else np.dtype(file["dtype"]).name
        if file["of_folder"]:
            part = {"name": file["name"].split("/", 1)[1], "bytes": file["bytes"]}
            if item["kind"] != "table":
                item["kind"] = "table" if part["name"] == TABLE else "graph"
            item["files"].append({**part, "dtype": dtype, "shape": file["shape"]})
        elif dtype is not None:
            item.update(kind="array", dtype=dtype, shape=file["shape"])
    for item in entries.values():
        item["files"].sort(key=lambda part: part["name"])
    return [entries[name] for name in sorted(entries)]


def entries_table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("name", "kind", "what", "size"):
        table.add_column(name, justify="right" if name == "size" else "left", overflow="fold")
    for item in entries:
        table.add_row(escape(item["name"]), item["kind"], _what(item), format_bytes(item["bytes"]))
    return table


def _what(item: dict[str, Any]) -> str:
    if item["kind"] == "array":
        return f"{item['dtype']} {tuple(item['shape'])}"
    lengths = {part["name"]: part["shape"] for part in item["files"]}
    if item["kind"] == "graph" and "offsets.npy" in lengths and "edges.npy" in lengths:
        weights = ", weights" if "weights.npy" in lengths else ""
        return f"{lengths['offsets.npy'][0] - 1:,} vertices, {lengths['edges.npy'][0]:,} edges{weights}"
    return f"{len(lengths)} files" if item["kind"] == "table" else ""


def facts_table(facts: Any) -> Table:
    table = Table(title=f"Volume {facts['id']}", title_justify="left", show_header=False)
    table.add_column(justify="left", style="bold")
    table.add_column(justify="left", overflow="fold")
    stripe = facts["stripe_bytes"]
    layout = facts["layout"] + ("" if stripe is None else f", stripes of {format_bytes(stripe)}")
    used = facts["bytes"] - facts["free_bytes"]
    for name, value in (
        ("format version", f"{facts['version']}"),
        ("layout", layout),
        ("changes", f"{facts['generation'] - 1:,}"),
        ("used", f"{format_bytes(used)} of {format_bytes(facts['bytes'])}"),
        ("one checksum for", format_bytes(facts["chunk_bytes"])),
        ("of each member", format_bytes(facts["member_bytes"])),
        *((f"member {k}", name) for k, name in enumerate(facts["members"])),
    ):
        table.add_row(name, escape(value))
    return table


def finding_lines(verdict: Any) -> list[str]:
    lines = [
        f"member {each['member']} ({each['name']}), byte {each['offset']:,}, {each['bytes']:,} bytes: "
        + (f"{each['file']}: " if each["file"] else "")
        + each["what"]
        for each in verdict["findings"][:TOLD_FINDINGS]
    ]
    if verdict["problems"] > TOLD_FINDINGS:
        lines.append(f"and {verdict['problems'] - TOLD_FINDINGS:,} more")
    return lines
