"""What optimizers keep of each element of a table: arrays as large as it, in files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from penstock.arrays import Array, empty, from_reference, from_tensor, open_array
from penstock.nn.generations import generation_of
from penstock.nn.table_files import append_rows, how_opened, is_open, make_table, referred_by, sums_path
from penstock.optim.optimizer import Optimizer, Table


def kept_kind(array: Array) -> str:
    """The type of what is kept of a table: torch's of 16 bits lose what is small."""
    return "float64" if array.dtype.name == "float64" else "float32"


def wrong_kept(array: Array, shape: Any, kind: Any, *wanted: Any) -> ValueError:
    return ValueError(
        f"sums of {kind} {shape} for {array!r}: it takes those of {wanted[1]} {wanted[0]}: load the state of "
        "the optimizer of this table"
    )


def checked_kept(array: Array, kept: Any, name: str, shape: tuple[int, ...], kind: str) -> Tensor:
    """A tensor of a state. ValueError for another type or shape."""
    if not isinstance(kept, Tensor):
        raise ValueError(f"the state of {array!r} has no {name!r}: save it by state_dict()")
    found = tuple(kept.shape), str(kept.dtype).removeprefix("torch.")
    if found != (shape, kind):
        raise wrong_kept(array, *found, shape, kind)
    return kept


def checked_steps(array: Array, state: dict[str, Any], whose: str) -> int:
    steps = state.get("steps")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise ValueError(f"the state of {array!r} in {whose} has no 'steps': save it by state_dict()")
    return steps


class ElementOptimizer(Optimizer):
    """An optimizer that keeps numbers of each element: what it keeps lies in a file beside the table, behind
    a cache of the same size, or in host memory for a table in memory."""

    _FILES: ClassVar[dict[str, str]]  # what it is called in a state, and in the name of its file

    def __init__(self, tables: Any, rule: dict[str, Any]) -> None:
        self._arrays: dict[int, dict[str, Array]] = {}
        self._steps: dict[int, int] = {}
        super().__init__(tables, rule)

    def _start(self, table: Table, name: str) -> float:
        """What each number begins with."""
        return 0.0

    def kept_arrays(self) -> list[tuple[Array, str, Array]]:
        """Each table with what is kept of it in a file: its name in states, and the array."""
        return [
            (self._tables[number].array, name, array)
            for number, arrays in self._arrays.items()
            for name, array in arrays.items()
            if array.path is not None
        ]

    def kept_paths(self, table: Array) -> dict[str, Path]:
        """Where a table's are, by their names in states."""
        return (
            {} if table.path is None else {name: sums_path(table, file) for name, file in self._FILES.items()}
        )

    def _begin(self, number: int, table: Table) -> None:
        if number not in self._arrays:
            self._arrays[number] = self._new_arrays(table)
        for name, array in self._arrays[number].items():
            self._arrays[number][name] = self._ready(table, name, array)

    def _ready(self, table: Table, name: str, array: Array) -> Array:
        if not is_open(array):
            opened = array.opened
            array = _numbered(
                table.array, from_reference(opened.reference(), device=opened.device, writable=True)
            )
        array.check_errors()
        more = len(table.array) - len(array)
        if more > 0:
            start, shape = self._start(table, name), array.row_shape
            kind = getattr(torch, array.dtype.name)
            append_rows(
                array, more, lambda _, n, where: torch.full((n, *shape), start, dtype=kind, device=where)
            )
        return array

    def _new_arrays(self, table: Table) -> dict[str, Array]:
        for path in self.kept_paths(table.array).values():
            if path.exists():
                raise FileExistsError(
                    f"{path} is there, with the sums of a former run over {table.array.path} if that made "
                    "it: "
                    "load the state of that run's optimizer, or move the file away to begin anew"
                )
        made: dict[str, Array] = {}
        try:
            for name, file in self._FILES.items():
                made[name] = _new_array(table.array, file, self._start(table, name))
        except BaseException:
            for array in made.values():
                array.close()
                if array.path is not None:
                    Path(array.path).unlink()
            raise
        return made

    def _counted(self, number: int) -> None:
        self._steps[number] = self._steps.get(number, 0) + 1

    def close(self) -> None:
        for arrays in self._arrays.values():
            for array in arrays.values():
                if array.path is not None:  # what lies in memory would be lost
                    array.close()

    # States

    def _state(self, number: int) -> dict[str, Any]:
        steps = self._steps.get(number, 0)
        return {"steps": steps} | {
            name: _state_of(array) for name, array in self._arrays.get(number, {}).items()
        }

    def _read_state(self, number: int, state: dict[str, Any]) -> tuple[int, dict[str, Array]]:
        table, mine = self._tables[number].array, type(self).__name__
        steps, read = checked_steps(table, state, f"{mine}'s"), {}
        missing = [name for name in self._FILES if name not in state]
        if missing and (steps != 0 or len(missing) < len(self._FILES)):
            raise ValueError(
                f"the state of {table!r} in {mine}'s has no {missing[0]!r}: save it by state_dict()"
            )
        try:
            for name in self._FILES if not missing else ():
                read[name] = self._read_one(number, name, state[name])
        except BaseException:
            self._leave(number, (steps, read))
            raise
        return steps, read

    def _read_one(self, number: int, name: str, saved: Any) -> Array:
        table = self._tables[number].array
        if isinstance(saved, dict):
            return self._opened(number, name, table, saved)
        content = checked_kept(table, saved, name, table.shape, kept_kind(table))
        return from_tensor(content.cpu().clone(), device=table.opened.device)

    def _opened(self, number: int, name: str, table: Array, reference: Any) -> Array:
        """Beside the table, if they are there: they may have moved with it."""
        wanted, referred = (
            (table.shape, kept_kind(table)),
            referred_by(reference, f"{type(self).__name__}'s sums"),
        )
        if referred != wanted:
            raise wrong_kept(table, *referred, *wanted)
        where, beside = reference["path"], self.kept_paths(table).get(name)
        if beside is not None and beside.exists():
            where = str(beside)
        current = self._arrays.get(number, {}).get(name)
        if current is not None and current.path == where and is_open(current):
            return current  # a file has one writer
        if not Path(where).exists():
            raise FileNotFoundError(
                f"{where}: the sums of {table!r} are not there: put that file of the checkpoint beside "
                "the table"
            )
        kept = from_reference({**reference, "path": where}, device=table.opened.device, writable=True)
        if (kept.shape, kept.dtype.name) != wanted:
            kept.close()
            raise wrong_kept(table, kept.shape, kept.dtype.name, *wanted)
        return _numbered(table, kept)

    def _leave(self, number: int, read: tuple[int, dict[str, Array]]) -> None:
        for name, array in read[1].items():
            if array is not self._arrays.get(number, {}).get(name):
                array.close()

    def _take_state(self, number: int, read: tuple[int, dict[str, Array]]) -> None:
        before = self._arrays.pop(number, {})
        self._steps[number], arrays = read
        if arrays:
            self._arrays[number] = arrays
        for array in before.values():
            if all(array is not taken for taken in arrays.values()):
                array.close()


def _numbered(table: Array, kept: Array) -> Array:
    """What is stored in it is a change of its table."""
    generation = generation_of(table)
    if generation is not None:
        kept.before_store = generation.begin
    return kept


def _state_of(array: Array) -> Any:
    if array.path is None:
        return array.tensor().cpu().clone()
    if is_open(array):
        array.flush()
    return array.opened.reference()


def _new_array(table: Array, file: str, start: float) -> Array:
    """All `start`, of the table's shape."""
    kind = getattr(torch, kept_kind(table))
    if table.path is None:
        return from_tensor(torch.full(table.shape, start, dtype=kind), device=table.opened.device)
    path, how = sums_path(table, file), how_opened(table)
    if start == 0:
        return _numbered(table, empty(path, table.shape, kept_kind(table), **how))
    width = table.shape[1]
    make_table(
        path,
        table.shape,
        kept_kind(table),
        how,
        lambda _, n, where: torch.full((n, width), start, dtype=kind, device=where),
    )
    return _numbered(table, open_array(path, writable=True, **how))


class RowNumbers:
    """A number for each row of some tables, in memory: zeros for rows that are new."""

    def __init__(self) -> None:
        self._of: dict[int, Tensor] = {}

    def of(self, number: int, array: Array) -> Tensor:
        """A tensor of shape (rows,) on the table's device, which optimizers change in place."""
        kind, rows, where = getattr(torch, kept_kind(array)), len(array), array.device
        found = self._of.get(number)
        if found is None:
            found = self._of[number] = torch.zeros(rows, dtype=kind, device=where)
        elif len(found) < rows:
            more = torch.zeros(rows - len(found), dtype=kind, device=where)
            found = self._of[number] = torch.cat([found, more])
        return found

    def read(self, array: Array, state: dict[str, Any], name: str) -> Tensor:
        """Of a state, checked."""
        return checked_kept(array, state.get(name), name, array.shape[:1], kept_kind(array))

    def take(self, number: int, array: Array, read: Tensor) -> None:
        self._of[number] = read.to(array.device, copy=True)
