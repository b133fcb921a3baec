"""Saves checkpoints: whole, or not at all."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from penstock.arrays import Array
from penstock.arrays.messages import system_error
from penstock.checkpoint.contents import check_known, checked_model, name_in, optimizers_by_name, tables_of
from penstock.checkpoint.manifest import (
    STATE,
    Manifest,
    Saved,
    Written,
    numbers,
    path_of,
    read_manifest,
    write_manifest,
)
from penstock.checkpoint.progress import Copied
from penstock.nn.checksums import Checksum
from penstock.nn.generations import generation_of, sync_folder
from penstock.nn.snapshots import checksum_of, copy_table
from penstock.optim.moments import ElementOptimizer

if TYPE_CHECKING:
    from penstock.callbacks import Progress


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time saves into a folder. BlockingIOError for another."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"save a checkpoint in {folder}: another process saves there: let one rank save, or choose "
                "another folder"
            ) from None
        yield


def _parts_of(tables: dict[str, Array], optimizers: dict[str, Any]) -> list[tuple[Saved, Array]]:
    """What is copied to files, and of which arrays. REQUIRES: states were taken, which number the tables."""
    found: list[tuple[Saved, Array]] = []

    def add(array: Array, table: str, kept: str | None, optimizer: str | None) -> None:
        generation = generation_of(tables[table])
        mark = None if generation is None else generation.read()
        about = (table, kept, optimizer, f"{len(found)}.npy", array.shape, array.dtype.name, mark)
        found.append((Saved(*about), array))

    for name, array in tables.items():
        add(array, name, None, None)
    for name, one in optimizers.items():
        if isinstance(one, ElementOptimizer):
            for table, kept, array in one.kept_arrays():
                add(array, name_in(tables, table), kept, name)
    return found


def _linked(part: Saved, before: tuple[Path, list[Saved]] | None, path: Path) -> Written | None:
    """What is known of the bytes if the checkpoint before has the same numbers, and shares them by a link."""
    if before is None or part.generation is None:
        return None
    folder, parts = before
    same = [
        other
        for other in parts
        if (other.table, other.kept, other.optimizer) == (part.table, part.kept, part.optimizer)
        and other.generation == part.generation
        and (other.shape, other.dtype) == (part.shape, part.dtype)
    ]
    if not same:
        return None
    try:
        os.link(folder / same[0].file, path)
    except OSError:  # a file system without links, or with as many as it can have
        return None
    return same[0].written


def _write_table(
    part: Saved,
    array: Array,
    path: Path,
    before: tuple[Path, list[Saved]] | None,
    copied: Copied,
    *,
    sums: bool,
) -> Saved:
    """Returns what the manifest is to say of it."""
    known = _linked(part, before, path)
    if known is not None and (known.crc32 is not None or not sums):
        copied(array.nbytes)
        return replace(part, written=known)
    if known is not None:
        return replace(part, written=Written(known.nbytes, checksum_of(path, copied)))
    checksum = Checksum() if sums else None
    copy_table(array, path, copied, checksum)
    crc32 = None if checksum is None else checksum.value
    return replace(part, written=Written(path.stat().st_size, crc32))


def _write_draft(
    draft: Path,
    state: dict[str, Any],
    parts: list[tuple[Saved, Array]],
    before: tuple[Path, list[Saved]] | None,
    progress: Progress | None,
    *,
    sums: bool,
) -> None:
    draft.mkdir()
    copied = Copied("copy", sum(array.nbytes for _, array in parts), progress)
    saved = [_write_table(part, each, draft / part.file, before, copied, sums=sums) for part, each in parts]
    with (draft / STATE).open("wb") as file:
        try:
            torch.save(state, file)
        except (pickle.PicklingError, AttributeError):  # as of a function that has no name
            raise _unloadable(draft) from None
        file.flush()
        os.fsync(file.fileno())
    _check_loads(draft / STATE)
    written = Written((draft / STATE).stat().st_size, checksum_of(draft / STATE))
    write_manifest(draft, Manifest(written, saved))
    sync_folder(draft)


def _check_loads(path: Path) -> None:
    """TypeError for a state that `load` would not read."""
    try:
        torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except pickle.UnpicklingError:
        raise _unloadable(path.parent) from None


def _unloadable(draft: Path) -> TypeError:
    return TypeError(
        f"save a checkpoint in {draft.parent}: extra, or a state, holds objects that torch.load does not "
        "take with weights_only=True: give tensors, numbers, strings, lists and dicts of them"
    )


def _newest(folder: Path) -> tuple[Path, list[Saved]] | None:
    """The checkpoint that unchanged tables are linked to; none where it cannot be read."""
    there = numbers(folder)
    if not there:
        return None
    path = path_of(folder, there[-1])
    try:
        return path, read_manifest(path).parts
    except (OSError, ValueError):
        return None


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(
            f"save a checkpoint in {folder}: there is a file of that name: name a folder"
        ) from None
    except OSError as problem:
        code = problem.errno or 0
        raise system_error(
            f"save a checkpoint in {folder}: {os.strerror(code)}: name another folder", code
        ) from None
    return folder


def _check_flushed(tables: dict[str, Array], parts: list[tuple[Saved, Array]]) -> None:
    for _, array in parts:
        if array._native is not None:
            array.flush()


def _clear_away(folder: Path, keep: int | None) -> None:
    """Deletes drafts of processes that were killed, and checkpoints beyond the newest `keep`, which lose
    their names first: what is deleted in part is never taken for whole."""
    for number in numbers(folder)[:-keep] if keep is not None else ():
        path_of(folder, number).rename(folder / f".gone-{uuid.uuid4().hex}")
    for path in folder.iterdir():
        if path.name.startswith((".gone-", ".draft-")):
            shutil.rmtree(path)


def save(
    folder: str | os.PathLike[str],
    *,
    model: nn.Module | None = None,
    optimizers: Any = (),
    extra: Any = None,
    keep: int | None = 3,
    checksums: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Saves a model, its optimizers and its tables as the next checkpoint of a folder.

    Whenever the process is killed, or the machine stops, the folder has the checkpoint whole or not at all,
    and those before. REQUIRES: nothing trains meanwhile.

    Args:
        folder: where checkpoints are kept; made where there is none.
        model: a module; its tables that are trained are copied, with what the optimizers keep beside them.
        optimizers: an optimizer, several, or a mapping of names to them; of torch.optim, of penstock.optim,
            and anything else with `state_dict` and `load_state_dict`, such as schedulers.
        extra: what `load` gives back, of types that `torch.load(weights_only=True)` takes: a step, say.
        keep: how many checkpoints stay, the newest; None: all. While one is saved there is one more.
        checksums: of the copies of tables, for `load` to compare. Without them a copy that shares its extents
            with the table is not read, and takes no time; damage to it is not noticed.
        progress: called with "copy", the bytes of tables that are copied and how many there are.

    Returns:
        The checkpoint's own folder.

    Raises:
        ValueError: a table in memory, which has no file; an optimizer of tables that the model does not hold.
        TypeError: for what is no module, or has no state_dict.
        OSError: no room for the copies; BlockingIOError: another process saves into the folder.
    """
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise ValueError(
            f"save a checkpoint in {folder}: keep {keep!r}: give a number from 1, or None for all"
        )
    model, named = checked_model(model), optimizers_by_name(optimizers)
    tables = tables_of(model)
    check_known(tables, named)
    where = _made(Path(os.fsdecode(folder)))
    with _alone_in(where):
        _clear_away(where, None)
        state = {
            "model": model.state_dict(),
            "optimizers": {name: one.state_dict() for name, one in named.items()},
            "extra": extra,
        }
        parts = _parts_of(tables, named)
        _check_flushed(tables, parts)
        there = numbers(where)
        draft = where / f".draft-{uuid.uuid4().hex}"
        try:
            _write_draft(draft, state, parts, _newest(where), progress, sums=checksums)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        made = path_of(where, there[-1] + 1 if there else 0)
        draft.rename(made)
        sync_folder(where)
        _clear_away(where, keep)
    return made
