"""Where copies of tables go when a model is copied."""

from __future__ import annotations

import contextvars
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.arrays import Array, from_reference, from_tensor, open_array
from penstock.nn.snapshots import copy_table
from penstock.nn.table_files import how_opened, read_table

_FOLDER: contextvars.ContextVar[Path | None] = contextvars.ContextVar("penstock_copies", default=None)


@contextmanager
def copies_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Lets `copy.deepcopy` of a module inside the block copy each table that is trained to a new file.

    Args:
        folder: where the files go, each with a name of its own (`NAME.copy-....npy`); they belong to the
            copy, and are not deleted with it.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    where = Path(os.fsdecode(folder))
    if not where.is_dir():
        raise FileNotFoundError(f"copy tables to {where}: there is no such folder: make it first")
    token = _FOLDER.set(where)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def copied_array(array: Array, frozen: bool, memo: dict[int, Any]) -> Array:
    """The array of a copied module; one for all modules of the copy that shared one.

    memo: of `copy.deepcopy`.
    """
    known: dict[int, Array] = memo.setdefault(id(copied_array), {})
    if id(array) not in known:
        known[id(array)] = _copied(array, frozen)
    return known[id(array)]


def _copied(array: Array, frozen: bool) -> Array:
    opened = array.opened
    if array.path is None:
        how = {key: value for key, value in opened.placing().items() if key != "line"}
        return from_tensor(read_table(array), **how)
    if frozen:  # nobody writes through an array that was opened to be read
        return (
            array
            if array.writable
            else from_reference(opened.reference(), device=opened.device, writable=False)
        )
    folder = _FOLDER.get()
    if folder is None:
        raise ValueError(
            f"copy the table in {array.path}: it is open to be written, and a file has one writer: copy the "
            "model "
            "inside `with penstock.nn.copies_in(folder):`, which copies the file, or freeze the table"
        )
    array.flush()
    path = folder / f"{Path(array.path).stem}.copy-{uuid.uuid4().hex[:12]}.npy"
    copy_table(array, path)
    return open_array(path, writable=True, dtype=array.dtype, **how_opened(array))
