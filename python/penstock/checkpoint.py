"""Checkpoints of a model with its optimizers and tables: saved whole or not at all, and restored to the
numbers that they had.

A checkpoint is a folder, `checkpoint-00000007`, in a folder of checkpoints: `state.pt`, written by
torch.save; a .npy file for each table that is trained, and for what an optimizer keeps of each of its
elements; and `manifest.json`, which says what is what. It is made under another name, put on the device for
good, and named last: whenever the process ends, the newest one that has its name is whole.

A copy of a table shares its extents with the table where the file system can (XFS, Btrfs); elsewhere it takes
the table's size, without its holes. A table that has not changed since the checkpoint before is linked to the
copy in that. Tables that are frozen are saved by reference alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from penstock.arrays import Array
from penstock.arrays.layout import find_layout
from penstock.nn.embedding import Embedding
from penstock.nn.generations import Mark, generation_of, is_mark, sync_folder
from penstock.nn.snapshots import copy_table, restore_range
from penstock.optim.moments import ElementOptimizer
from penstock.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from penstock.callbacks import Progress

__all__ = ["load", "numbers", "save"]

_NAME = re.compile(r"checkpoint-(\d{8,})")
_VERSION = 1


@dataclass(frozen=True)
class _Saved:
    """What a manifest says of one file of numbers."""

    table: str  # the module's name in the model
    kept: str | None  # of an optimizer, its name in states; None: the table itself
    optimizer: str | None
    file: str
    shape: tuple[int, ...]
    dtype: str
    generation: Mark | None


# Where checkpoints are


def numbers(folder: str | os.PathLike[str]) -> list[int]:
    """The checkpoints in a folder, oldest first; none where there is no such folder."""
    where = Path(os.fsdecode(folder))
    if not where.is_dir():
        return []
    found = [_NAME.fullmatch(path.name) for path in where.iterdir() if path.is_dir()]
    return sorted(int(match[1]) for match in found if match)


def _path_of(folder: Path, number: int) -> Path:
    return folder / f"checkpoint-{number:08}"


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


# What a checkpoint is of


def _named(optimizers: Any) -> dict[str, Any]:
    """By the names that a mapping gives them, or their places."""
    if isinstance(optimizers, Mapping):
        named = {str(name): one for name, one in optimizers.items()}
    elif isinstance(optimizers, Iterable):
        named = {str(place): one for place, one in enumerate(optimizers)}
    else:
        named = {"0": optimizers}
    for name, one in named.items():
        if not (hasattr(one, "state_dict") and hasattr(one, "load_state_dict")):
            raise TypeError(
                f"a checkpoint of optimizer {name}, a {type(one).__name__}: give optimizers, schedulers or "
                "other "
                "objects with state_dict and load_state_dict"
            )
    return named


def _checked_model(model: Any) -> nn.Module:
    if model is None:
        return nn.Module()
    if not isinstance(model, nn.Module):
        raise TypeError(f"a checkpoint of a {type(model).__name__}: give a torch.nn.Module as model")
    return model


def _tables_of(model: nn.Module) -> dict[str, Array]:
    """The arrays that are trained, each by the name of the first module that has it."""
    embeddings = {name: one for name, one in model.named_modules() if isinstance(one, Embedding)}
    named = {name: one for name, one in embeddings.items() if not one.freeze}
    each: dict[int, str] = {}
    for name, one in named.items():
        each.setdefault(id(one.array), name)
    return {name: named[name].array for name in each.values()}


def _check_known(tables: dict[str, Array], optimizers: dict[str, Any]) -> None:
    known = [id(array) for array in tables.values()]
    for name, one in optimizers.items():
        for table in one._tables if isinstance(one, Optimizer) else ():
            if id(table.array) not in known:
                raise ValueError(
                    f"a checkpoint with optimizer {name}, which trains {table.array!r}: the model does not "
                    "hold that "
                    "table: give a model that does"
                )


def _name_in(tables: dict[str, Array], array: Array) -> str:
    return next(name for name, each in tables.items() if each is array)


# Saving


class _Copied:
    """Adds up what is copied, for a progress callback."""

    def __init__(self, what: str, total: int, progress: Progress | None) -> None:
        self._what, self._total, self._done, self._progress = what, total, 0, progress

    def __call__(self, nbytes: int) -> None:
        self._done = min(self._done + nbytes, self._total)
        if self._progress is not None:
            self._progress(self._what, self._done, self._total)


def _parts_of(tables: dict[str, Array], optimizers: dict[str, Any]) -> list[tuple[_Saved, Array]]:
    """What is copied to files, and of which arrays. REQUIRES: states were taken, which number the tables."""
    found: list[tuple[_Saved, Array]] = []

    def add(array: Array, table: str, kept: str | None, optimizer: str | None) -> None:
        generation = generation_of(tables[table])
        mark = None if generation is None else generation.read()
        about = (table, kept, optimizer, f"{len(found)}.npy", array.shape, array.dtype.name, mark)
        found.append((_Saved(*about), array))

    for name, array in tables.items():
        add(array, name, None, None)
    for name, one in optimizers.items():
        if isinstance(one, ElementOptimizer):
            for table, kept, array in one.kept_arrays():
                add(array, _name_in(tables, table), kept, name)
    return found


def _linked(part: _Saved, before: tuple[Path, list[_Saved]] | None, path: Path) -> bool:
    """Whether the checkpoint before has the same numbers, and shares them by a link."""
    if before is None or part.generation is None:
        return False
    folder, parts = before
    same = [
        other
        for other in parts
        if (other.table, other.kept, other.optimizer) == (part.table, part.kept, part.optimizer)
        and other.generation == part.generation
        and (other.shape, other.dtype) == (part.shape, part.dtype)
    ]
    if not same:
        return False
    try:
        os.link(folder / same[0].file, path)
    except OSError:  # a file system without links, or with as many as it can have
        return False
    return True


def _write_draft(
    draft: Path,
    state: dict[str, Any],
    parts: list[tuple[_Saved, Array]],
    before: tuple[Path, list[_Saved]] | None,
    progress: Progress | None,
) -> None:
    draft.mkdir()
    copied = _Copied("copy", sum(array.nbytes for _, array in parts), progress)
    for part, array in parts:
        if _linked(part, before, draft / part.file):
            copied(array.nbytes)
        else:
            copy_table(array, draft / part.file, copied)
    with (draft / "state.pt").open("wb") as file:
        try:
            torch.save(state, file)
        except (pickle.PicklingError, AttributeError):  # as of a function that has no name
            raise _unloadable(draft) from None
        file.flush()
        os.fsync(file.fileno())
    _check_loads(draft / "state.pt")
    with (draft / "manifest.json").open("w") as file:
        json.dump({"version": _VERSION, "parts": [asdict(part) for part, _ in parts]}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
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


def _newest(folder: Path) -> tuple[Path, list[_Saved]] | None:
    """The checkpoint that unchanged tables are linked to; none where it cannot be read."""
    there = numbers(folder)
    if not there:
        return None
    path = _path_of(folder, there[-1])
    try:
        return path, _manifest(path)
    except (OSError, ValueError):
        return None


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(
            f"save a checkpoint in {folder}: there is a file of that name: name a folder"
        ) from None
    return folder


def _check_flushed(tables: dict[str, Array], parts: list[tuple[_Saved, Array]]) -> None:
    for _, array in parts:
        if array._native is not None:
            array.flush()


def _clear_away(folder: Path, keep: int | None) -> None:
    """Deletes drafts of processes that were killed, and checkpoints beyond the newest `keep`, which lose
    their names first: what is deleted in part is never taken for whole."""
    for number in numbers(folder)[:-keep] if keep is not None else ():
        _path_of(folder, number).rename(folder / f".gone-{uuid.uuid4().hex}")
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
    model, named = _checked_model(model), _named(optimizers)
    tables = _tables_of(model)
    _check_known(tables, named)
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
            _write_draft(draft, state, parts, _newest(where), progress)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        made = _path_of(where, there[-1] + 1 if there else 0)
        draft.rename(made)
        sync_folder(where)
        _clear_away(where, keep)
    return made


# Loading


def _manifest(checkpoint: Path) -> list[_Saved]:
    path = checkpoint / "manifest.json"
    try:
        content = json.loads(path.read_bytes())
        parts = [_Saved(**{**part, "shape": tuple(part["shape"])}) for part in content["parts"]]
        known = content["version"] == _VERSION and all(_is_sound(part) for part in parts)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"open {path}: it is missing, and the checkpoint is not whole: load another, by its number"
        ) from None
    except (ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise ValueError(
            f"open {path}: it is no manifest of this version of Penstock: load another checkpoint, by its "
            "number"
        )
    return parts


def _is_sound(part: _Saved) -> bool:
    plain = re.fullmatch(r"\d+\.npy", part.file) is not None
    return plain and (part.generation is None or is_mark(part.generation))


def _chosen(folder: Path, number: int | None) -> Path:
    there = numbers(folder)
    if number is None and there:
        return _path_of(folder, there[-1])
    if number not in there:
        listed = f"it has {', '.join(map(str, there[-8:]))}" if there else "it has none"
        wanted = "a checkpoint" if number is None else f"checkpoint {number}"
        raise FileNotFoundError(
            f"load {wanted} from {folder}: {listed}: name a folder that save has written to"
        )
    return _path_of(folder, number)


def _check_fits(checkpoint: Path, state: dict[str, Any], model: nn.Module, named: dict[str, Any]) -> None:
    """ValueError for a state of another model or of other optimizers, before anything is changed."""
    theirs, mine = set(state["model"]), set(_keys_of(model))
    for keys, what in ((theirs - mine, "the model has no"), (mine - theirs, "the checkpoint has no")):
        if keys:
            raise ValueError(f"load {checkpoint}: {what} {min(keys)!r}: give the model that was saved")
    for name, tensor in model.named_parameters():
        if name in state["model"] and state["model"][name].shape != tensor.shape:
            raise ValueError(
                f"load {checkpoint}: {name} has shape {tuple(state['model'][name].shape)} there and "
                f"{tuple(tensor.shape)} in the model: give the model that was saved"
            )
    if set(state["optimizers"]) != set(named):
        raise ValueError(
            f"load {checkpoint}: it has optimizers {sorted(state['optimizers'])}, and {sorted(named)} were "
            "given: "
            "give them as they were saved"
        )
    for name, one in named.items():
        kind = type(one).__name__
        saved = state["optimizers"][name]
        if isinstance(one, Optimizer) and saved.get("optimizer") != kind:
            raise ValueError(
                f"load {checkpoint}: optimizer {name} was {saved.get('optimizer')} and is {kind}: give the "
                "optimizers that were saved"
            )


def _keys_of(model: nn.Module) -> list[str]:
    """Of its state_dict, without the flush that one takes."""
    found = []
    for prefix, one in model.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        found += [f"{dot}{name}" for name, value in one._parameters.items() if value is not None]
        found += [
            f"{dot}{name}"
            for name, value in one._buffers.items()
            if value is not None and name not in one._non_persistent_buffers_set
        ]
        if type(one).get_extra_state is not nn.Module.get_extra_state:
            found.append(f"{dot}_extra_state")
    return found


def _check_tables(checkpoint: Path, parts: list[_Saved], tables: dict[str, Array]) -> None:
    saved = {part.table: part for part in parts if part.kept is None}
    if set(saved) != set(tables):
        odd = min(set(saved) ^ set(tables))
        raise ValueError(
            f"load {checkpoint}: table {odd!r} is {'not in the model' if odd in saved else 'not in it'}: "
            "give the "
            "model that was saved"
        )
    for name, part in saved.items():
        array = tables[name]
        if (array.shape, array.dtype.name) != (part.shape, part.dtype):
            raise ValueError(
                f"load {checkpoint}: table {name!r} was {part.dtype} {part.shape}, and {array.path} is "
                f"{array.dtype} "
                f"{array.shape}: copy {checkpoint / part.file} to a new path, and make the module over that"
            )
        layout = find_layout(checkpoint / part.file)
        if layout.shape != part.shape:
            raise ValueError(
                f"load {checkpoint}: {part.file} has shape {layout.shape}: it was changed: load another"
            )


def _restore(
    checkpoint: Path, parts: list[_Saved], tables: dict[str, Array], named: dict[str, Any], copied: _Copied
) -> None:
    """Gives each table, and what is kept of it, the numbers of the checkpoint. Until all of a table's are
    there, its generation is none that was saved: a load that is killed is made again."""
    for name, array in tables.items():
        own = [part for part in parts if part.table == name]
        _remove_younger(own, array, named)
        generation = generation_of(array)
        mark = next(part.generation for part in own if part.kept is None)
        kept = {part.file: _target_of(part, array, named) for part in own if part.kept is not None}
        there = all(path.exists() for path, _ in kept.values())
        if generation is not None and mark is not None and generation.read() == mark and there:
            array.flush()
            if generation.read() == mark:  # nothing has been stored since
                for _ in own:
                    copied(array.nbytes)
                continue
        if generation is not None:
            generation.settle({"number": 0 if mark is None else mark["number"], "id": uuid.uuid4().hex})
        for part in own:
            _restore_file(
                checkpoint / part.file, *kept.get(part.file, (Path(str(array.path)), array)), copied
            )
        if generation is not None and mark is not None:
            generation.settle(mark)


def _remove_younger(own: list[_Saved], table: Array, named: dict[str, Any]) -> None:
    """What an optimizer has begun to keep of a table since the checkpoint is gone with the steps since."""
    saved = {(part.optimizer, part.kept) for part in own}
    for name, one in named.items():
        trains = isinstance(one, ElementOptimizer) and any(each.array is table for each in one._tables)
        for kept, path in one.kept_paths(table).items() if trains else ():
            if (name, kept) not in saved:
                one.close()  # a step opens again what is there
                path.unlink(missing_ok=True)


def _target_of(part: _Saved, table: Array, named: dict[str, Any]) -> tuple[Path, Array | None]:
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


def _restore_file(snapshot: Path, path: Path, opened: Array | None, copied: _Copied) -> None:
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

    def copy() -> int:
        restore_range(snapshot, begin, path, offset, opened.nbytes, copied)
        return rows

    opened.rewrite(copy)


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

    A table that has not changed since is not copied. A load that is killed is made again: until it is over,
    the tables are of no generation that a state is loaded for.

    Args:
        folder: where `save` has put checkpoints.
        model, optimizers: as they were given to `save`; tables are open to be written, at any path.
        number: of the checkpoint; None: the newest.
        progress: called with "restore", the bytes of tables that are restored and how many there are.

    Returns:
        `extra`, as it was given to `save`.

    Raises:
        FileNotFoundError: there is no checkpoint, or none of that number.
        ValueError: a checkpoint of another model, of other optimizers or of tables of another shape or type;
            nothing is changed then.
    """
    where, model, named = Path(os.fsdecode(folder)), _checked_model(model), _named(optimizers)
    checkpoint = _chosen(where, number)
    parts = _manifest(checkpoint)
    state = torch.load(checkpoint / "state.pt", weights_only=True, map_location="cpu")
    tables = _tables_of(model)
    _check_known(tables, named)
    _check_fits(checkpoint, state, model, named)
    _check_tables(checkpoint, parts, tables)
    for part in parts:
        if part.kept is not None:
            _target_of(part, tables[part.table], named)
    total = sum((checkpoint / part.file).stat().st_size for part in parts)
    _restore(checkpoint, parts, tables, named, _Copied("restore", total, progress))
    for module in model.modules():
        if isinstance(module, Embedding):
            module._drawn = False  # its numbers are those of the checkpoint now
    model.load_state_dict(state["model"])
    for name, one in named.items():
        one.load_state_dict(state["optimizers"][name])
    return state["extra"]
