"""Checkpoints of a model with its optimizers and tables: saved whole or not at all, and restored to the
numbers that they had.

A checkpoint is a folder, `checkpoint-00000007`, in a folder of checkpoints: `state.pt`, written by
torch.save; a .npy file for each table that is trained, and for what an optimizer keeps of each of its
elements; and `manifest.json`, which says what is what, and how many bytes each file has and their CRC-32, by
which `load` notices what was damaged. It is made under another name, put on the device for
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
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from penstock.arrays import Array
from penstock.arrays.layout import find_layout
from penstock.errors import Error
from penstock.nn.checksums import Checksum
from penstock.nn.embedding import Embedding
from penstock.nn.generations import Mark, generation_of, is_mark, sync_folder
from penstock.nn.snapshots import checksum_of, copy_table, restore_range
from penstock.optim.moments import ElementOptimizer
from penstock.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from penstock.callbacks import Progress

__all__ = ["load", "numbers", "save"]

_NAME = re.compile(r"checkpoint-(\d{8,})")
_STATE = "state.pt"
_VERSION = 2


@dataclass(frozen=True)
class _Written:
    """What a manifest says of the bytes of a file."""

    nbytes: int
    crc32: int | None  # None: they were not read when they were saved


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
    written: _Written = _Written(0, None)  # not yet


@dataclass(frozen=True)
class _Manifest:
    state: _Written
    parts: list[_Saved]


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


def _linked(part: _Saved, before: tuple[Path, list[_Saved]] | None, path: Path) -> _Written | None:
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
    part: _Saved,
    array: Array,
    path: Path,
    before: tuple[Path, list[_Saved]] | None,
    copied: _Copied,
    *,
    sums: bool,
) -> _Saved:
    """Returns what the manifest is to say of it."""
    known = _linked(part, before, path)
    if known is not None and (known.crc32 is not None or not sums):
        copied(array.nbytes)
        return replace(part, written=known)
    if known is not None:
        return replace(part, written=_Written(known.nbytes, checksum_of(path, copied)))
    checksum = Checksum() if sums else None
    copy_table(array, path, copied, checksum)
    crc32 = None if checksum is None else checksum.value
    return replace(part, written=_Written(path.stat().st_size, crc32))


def _write_draft(
    draft: Path,
    state: dict[str, Any],
    parts: list[tuple[_Saved, Array]],
    before: tuple[Path, list[_Saved]] | None,
    progress: Progress | None,
    *,
    sums: bool,
) -> None:
    draft.mkdir()
    copied = _Copied("copy", sum(array.nbytes for _, array in parts), progress)
    saved = [_write_table(part, each, draft / part.file, before, copied, sums=sums) for part, each in parts]
    with (draft / _STATE).open("wb") as file:
        try:
            torch.save(state, file)
        except (pickle.PicklingError, AttributeError):  # as of a function that has no name
            raise _unloadable(draft) from None
        file.flush()
        os.fsync(file.fileno())
    _check_loads(draft / _STATE)
    written = _Written((draft / _STATE).stat().st_size, checksum_of(draft / _STATE))
    content = {"version": _VERSION, "state": asdict(written), "parts": [asdict(part) for part in saved]}
    with (draft / "manifest.json").open("w") as file:
        json.dump({**content, "crc32": _checksum_of_json(content)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(draft)


def _checksum_of_json(content: dict[str, Any]) -> int:
    """Of all that it says, however it is written."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


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
        return path, _manifest(path).parts
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
            _write_draft(draft, state, parts, _newest(where), progress, sums=checksums)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        made = _path_of(where, there[-1] + 1 if there else 0)
        draft.rename(made)
        sync_folder(where)
        _clear_away(where, keep)
    return made


# Loading


def _manifest(checkpoint: Path) -> _Manifest:
    path = checkpoint / "manifest.json"
    try:
        content = json.loads(path.read_bytes())
        known = content.pop("crc32") == _checksum_of_json(content) and content["version"] == _VERSION
        parts = [_part(one) for one in content["parts"]] if known else []
        manifest = _Manifest(_Written(**content["state"]), parts)
    except FileNotFoundError:
        raise _missing(checkpoint, path.name) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        known = False
    if not known or not all(_is_sound(part) for part in manifest.parts):
        raise ValueError(
            f"load {path}: it is no manifest of this version of Penstock, or was damaged: load another "
            "checkpoint, by its number"
        )
    return manifest


def _part(given: dict[str, Any]) -> _Saved:
    known = {"shape": tuple(given["shape"]), "written": _Written(**given["written"])}
    return _Saved(**{**given, **known})


def _missing(checkpoint: Path, name: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"load {checkpoint / name}: it is missing, and the checkpoint is not whole: load another, by its "
        "number"
    )


def _is_sound(part: _Saved) -> bool:
    plain = re.fullmatch(r"\d+\.npy", part.file) is not None
    return plain and (part.generation is None or is_mark(part.generation))


def _check_whole(checkpoint: Path, name: str, written: _Written, seen: _Copied | None = None) -> None:
    """ValueError for a file that has not the bytes that were saved."""
    path = checkpoint / name
    remedy = "a disk or a copy has damaged it: load another checkpoint, by its number"
    try:
        size = path.stat().st_size
        if size != written.nbytes:
            raise ValueError(f"load {path}: it has {size} bytes, and {written.nbytes} were saved: {remedy}")
        if written.crc32 is None:
            return
        found = checksum_of(path, seen)
    except FileNotFoundError:
        raise _missing(checkpoint, name) from None
    except OSError as problem:
        raise Error(
            f"load {path}: {os.strerror(problem.errno or 0)}: load another checkpoint, by its number",
            problem.errno or 0,
        ) from None
    if found != written.crc32:
        raise ValueError(
            f"load {path}: its bytes have the CRC-32 {found:08x}, and those that were saved "
            f"{written.crc32:08x}: {remedy}"
        )


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


def _is_unchanged(own: list[_Saved], array: Array, named: dict[str, Any]) -> bool:
    """Whether a table, and what is kept of it, has the numbers of the checkpoint."""
    generation = generation_of(array)
    mark = next(part.generation for part in own if part.kept is None)
    there = all(_target_of(part, array, named)[0].exists() for part in own if part.kept is not None)
    if generation is None or mark is None or not there or generation.read() != mark:
        return False
    array.flush()
    return generation.read() == mark  # nothing has been stored since


def _check_parts(checkpoint: Path, parts: list[_Saved], progress: Progress | None) -> None:
    """Before anything is changed: what is restored is read twice."""
    summed = [part.written.nbytes for part in parts if part.written.crc32 is not None]
    seen = _Copied("check", sum(summed), progress)
    for part in parts:
        _check_whole(checkpoint, part.file, part.written, seen)


def _restore(
    checkpoint: Path, own: list[_Saved], array: Array, named: dict[str, Any], copied: _Copied
) -> None:
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

    copied(begin)

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
    where, model, named = Path(os.fsdecode(folder)), _checked_model(model), _named(optimizers)
    checkpoint = _chosen(where, number)
    manifest = _manifest(checkpoint)
    parts = manifest.parts
    _check_whole(checkpoint, _STATE, manifest.state)
    state = torch.load(checkpoint / _STATE, weights_only=True, map_location="cpu")
    tables = _tables_of(model)
    _check_known(tables, named)
    _check_fits(checkpoint, state, model, named)
    _check_tables(checkpoint, parts, tables)
    for part in parts:
        if part.kept is not None:
            _target_of(part, tables[part.table], named)
    own = {name: [part for part in parts if part.table == name] for name in tables}
    changed = {name: not _is_unchanged(own[name], array, named) for name, array in tables.items()}
    _check_parts(checkpoint, [part for part in parts if changed[part.table]], progress)
    copied = _Copied("restore", sum(part.written.nbytes for part in parts), progress)
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
