"""What stands behind FROM for a table: files, and names that an alias gives to a table and its columns."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.columns.results import Result
from penstock.columns.statement_nodes import Node, check_parts, kind_of, refuse
from penstock.volume.names import entry_of, is_volume

READ_PARQUET = "read_parquet"


def files_of(node: Node, tables: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """What is opened for a table that is a folder, a file, a pattern of files' names, or lies on a volume; of
    READ_PARQUET its list. None: it is none of these.

    Args:
        node: The table.
        tables: Those that are given, by their names in lower case.
    """
    if kind_of(node) != "Table":
        return None
    if kind_of(node.this) == "ReadParquet":
        return _listed(node.this)
    if not node.this.args.get("quoted") or node.name.lower() in tables:
        return None
    path: str = node.name
    is_path = (
        is_volume(path) or Path(path).suffix or glob.has_magic(path) or os.path.exists(path)  # noqa: PTH110, of any length
    )
    return path if is_path else None


def _listed(call: Node) -> tuple[str, ...]:
    given = call.expressions
    if len(given) == 1 and kind_of(given[0]) == "Array":
        given = given[0].expressions
    if not all(kind_of(each) == "Literal" and each.is_string for each in given):
        refuse(call, "READ_PARQUET takes the name of a file or a list of names here, and no options")
    return tuple(each.name for each in given)


def name_of(node: Node, files: str | tuple[str, ...] | None) -> str:
    """What a table's columns are called by, in lower case: without an alias as in DuckDB."""
    if node.alias or files is None:
        name = node.alias or node.name
    elif isinstance(files, tuple):
        name = READ_PARQUET
    else:
        name = entry_of(files) if is_volume(files) else Path(files).name.lstrip(".").partition(".")[0]
    return str(name).lower()


def renamed(node: Node) -> list[str]:
    """The names that an alias gives the columns."""
    alias = node.args.get("alias")
    if alias is None:
        return []
    check_parts(alias, {"this", "columns"})
    return [each.name for each in alias.args.get("columns") or ()]


def called(node: Node, result: Result, names: list[str]) -> Result:
    """A subquery's result, whose first columns have other names."""
    if len(names) > len(result.columns):
        refuse(node, f"the subquery has {len(result.columns)} columns")
    columns = [
        replace(column, name=name)
        for column, name in zip(result.columns, [*names, *list(result)[len(names) :]], strict=True)
    ]
    return Result(columns, result.account)
