"""Restores what was saved: tables in their files, and the states of the model and its optimizers."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from penstock.arrays import Array
from penstock.arrays.layout import find_layout
from penstock.checkpoint.checks import check_fits, check_parts, check_tables, check_whole
from penstock.checkpoint.contents import check_known, checked_model, optimizers_by_name, tables_of
from penstock.checkpoint.manifest import STATE, Manifest, Saved, numbers, path_of, read_manifest
from penstock.checkpoint.progress import Copied
from penstock.checks import checked_integer
from penstock.nn.embedding import Embedding
from penstock.nn.generations import generation_of, sync_folder
from penstock.nn.snapshots import restore_range
from penstock.optim.moments import ElementOptimizer

if TYPE_CHECKING:
    from penstock.callbacks import Progress


def _chosen(folder: Path, number: int | None) -> Path:
    there = numbers(folder)
    if number is None and there:
        return path_of(folder, there[-1])
    if number not in there:
        listed = f"it has {', '.join(map(str, there[-8:]))}" if there else "it has none"
        wanted = "a checkpoint" if number is None else f"checkpoint {number}"
        raise FileNotFoundError(
            f"load {wanted} from {folder}: {listed}: name a folder that save has written to"
        )
    return path_of(folder, number)


def _is_unchanged(own: list[Saved], array: Array, named: dict[str, Any]) -> bool:
    """Whether a table, and what is kept of it, has the numbers of the checkpoint."""
    generation = generation_of(array)
    mark = next(part.generation for part in own if part.kept is None)
    there = all(_target_of(part, array, named)[0].exists() for part in own if part.kept is not None)
    if generation is None or mark is None or not there or generation.read() != mark:
        return False
    array.flush()
    return generation.read() == mark  # nothing has been stored since


def _restore(checkpoint: Path, own: list[Saved], array: Array, named: dict[str, Any], copied: Copied) -> None:
    """Gives a table, and what is kept of it, the numbers of the checkpoint. Until all of them are there, its
    generation is none that was saved: a load that is killed is made again."""
    generation = generation_of(array)
    mark = next(part.generation for part in own if part.kept is None)
    kept = {part.file: _target_of(part, array, named) for part in own if part.kept is not None}
    if generation is not None:
        generation.settle({"number": 0 if mark is None else mark["number"], "id": uuid.uuid4().hex})
    for part in own:
        _restore_file(checkpoint / part.file, *kept.get(part.file, (Path(str(array.path)), array)), copied)
    if generation is not None and mark is not None:
        generation.settle(mark)


def _remove_younger(own: list[Saved], table: Array, named: dict[str, Any]) -> None:
    """What an optimizer has begun to keep of a table since the checkpoint is gone with the steps since."""
    saved = {(part.optimizer, part.kept) for part in own}
    for name, one in named.items():
        trains = isinstance(one, ElementOptimizer) and any(each.array is table for each in one._tables)
        for kept, path in one.kept_paths(table).items() if trains else ():
            if (name, kept) not in saved:
                one.close()  # a step opens again what is there
                path.unlink(missing_ok=True)


def _target_of(part: Saved, table: Array, named: dict[str, Any]) -> tuple[Path, Array | None]:
    """The file of what an optimizer keeps of a table, and the array that it has open there."""
    optimizer = named[str(part.optimizer)]
    paths = optimizer.kept_paths(table) if isinstance(optimizer, ElementOptimizer) else {}
    if part.kept not in paths:
        raise ValueError(
            f"load the state of optimizer {part.optimizer}: it kept {part.kept!r} of table {part.table!r}, "
            "which a "
            f"{type(optimizer).__name__} does not: give the optimizers that were saved"
        )
    for array, name, kept in optimizer.kept_arrays():
        if array is table and name == part.kept and kept._native is not None:
            return Path(kept.path), kept
    return paths[str(part.kept)], None


def _restore_file(snapshot: Path, path: Path, opened: Array | None, copied: Copied) -> None:
    if opened is None:
        draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.draft")
        try:
            draft.touch(exist_ok=False)
            restore_range(snapshot, 0, draft, 0, snapshot.stat().st_size, copied)
            draft.replace(path)
            sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)
        return
    begin, offset, rows = find_layout(snapshot).offset, opened.opened.offset, len(opened)

    copied(begin)

    def copy() -> int:
        restore_range(snapshot, begin, path, offset, opened.nbytes, copied)
        return rows

    opened.rewrite(copy)


def read_extra(folder: str | os.PathLike[str], *, number: int | None = None) -> Any:
    """What `load` would return of a checkpoint, which restores nothing.

    Args:
        folder, number: as for `load`.

    Raises:
        FileNotFoundError, ValueError: as `load`.
    """
    checkpoint = _chosen(Path(os.fsdecode(folder)), number)
    return _read_state(checkpoint, read_manifest(checkpoint))["extra"]


def _read_state(checkpoint: Path, manifest: Manifest) -> Any:
    check_whole(checkpoint, STATE, manifest.state)
    return torch.load(checkpoint / STATE, weights_only=True, map_location="cpu")


def load(
    folder: str | os.PathLike[str],
    *,
    model: nn.Module | None = None,
    optimizers: Any = (),
    number: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Restores a model, its optimizers and its tables from a checkpoint of a folder: the tables have the
    numbers that they had when it was saved, wherever their files lie by now.

    A table that has not changed since is not copied. All that is copied is compared with its checksum before
    anything is changed. A load that is killed is made again: until it is over,
    the tables are of no generation that a state is loaded for.

    Args:
        folder: where `save` has put checkpoints.
        model, optimizers: as they were given to `save`; tables are open to be written, at any path.
        number: of the checkpoint; None: the newest.
        progress: called with "check", the bytes of tables that were compared and how many there are, and then
            with "restore" and those that are restored.

    Returns:
        `extra`, as it was given to `save`.

    Raises:
        FileNotFoundError: there is no checkpoint, or none of that number, or a file of it is missing.
        ValueError: a checkpoint of another model, of other optimizers or of tables of another shape or type,
            or a damaged one; nothing is changed then.
    """
    where, model, named = Path(os.fsdecode(folder)), checked_model(model), optimizers_by_name(optimizers)
    if number is not None:
        number = checked_integer(f"load checkpoint from {where}: number", number)
    checkpoint = _chosen(where, number)
    manifest = read_manifest(checkpoint)
    parts = manifest.parts
    state = _read_state(checkpoint, manifest)
    tables = tables_of(model)
    check_known(tables, named)
    check_fits(checkpoint, state, model, named)
    check_tables(checkpoint, parts, tables)
    for part in parts:
        if part.kept is not None:
            _target_of(part, tables[part.table], named)
    own = {name: [part for part in parts if part.table == name] for name in tables}
    changed = {name: not _is_unchanged(own[name], array, named) for name, array in tables.items()}
    check_parts(checkpoint, [part for part in parts if changed[part.table]], progress)
    copied = Copied("restore", sum(part.written.nbytes for part in parts), progress)
    for name, array in tables.items():
        _remove_younger(own[name], array, named)
        if changed[name]:
            _restore(checkpoint, own[name], array, named, copied)
        else:
            copied(sum(part.written.nbytes for part in own[name]))
    for module in model.modules():
        if isinstance(module, Embedding):
            module._drawn = False  # its numbers are those of the checkpoint now
    model.load_state_dict(state["model"])
    for name, one in named.items():
        one.load_state_dict(state["optimizers"][name])
    return state["extra"]
