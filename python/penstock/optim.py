"""Optimizers for `penstock.nn` tables: each step reads the rows that have a gradient, and stores them
changed.

They take tables and nothing else: a model's other parameters have an optimizer of torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from penstock.arrays import Array, empty, from_reference, from_tensor, open_array
from penstock.nn.optimizer import Optimizer, Table
from penstock.nn.tables import is_open, make_table, told_by

__all__ = ["SGD", "Adagrad", "Optimizer", "RowWiseAdagrad"]


class SGD(Optimizer):
    """weight -= lr * gradient, as torch.optim.SGD without momentum for sparse gradients.

    As there, what a row is to change by is added as often as the row was asked for, in no order: a run may
    differ from another in the last bits. With `torch.use_deterministic_algorithms(True)`, and for tables of
    16 bits, gradients are summed first.
    """

    def __init__(
        self,
        tables: Any,
        lr: float = 1e-3,
        *,
        momentum: float = 0,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(tables, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def _changes(self, table: Table) -> tuple[Tensor, Tensor]:
        return table.parts() if _adds(table.array) else table.changes()

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        array, lr = table.array, float(table.group["lr"])
        if _adds(array):
            array.scatter(rows, values * -lr, reduce="add", wait=False)
        else:
            array.scatter(rows, array.gather(rows).add_(values, alpha=-lr), wait=False)


def _adds(array: Array) -> bool:
    if torch.are_deterministic_algorithms_enabled():
        return False
    return array.dtype.name in ("float32", "float64")


class Adagrad(Optimizer):
    """sum += gradient^2; weight -= rate * gradient / (sqrt(sum) + eps), element by element, as
    torch.optim.Adagrad for sparse gradients (Duchi, Hazan, Singer 2011); rate = lr / (1 + k * lr_decay) after
    k steps in which the table had a gradient. Sums begin at initial_accumulator_value.

    The sums are as many numbers as the table, float32 where it has 16 bits (torch's of 16 bits are, and lose
    an eps of 1e-10 and whatever is too small). For a table in a file they lie in a file beside it,
    NAME.adagrad.npy (beside NAME.bin it is NAME.bin.OFFSET.adagrad.npy), behind a cache of the same size; for
    one in memory they lie in host memory. The file is made by the first step, and belongs to a checkpoint as
    the table does. One that is there is never begun anew: `load_state_dict` goes on with it.

    Errors, of a step: FileExistsError where there are sums that nobody resumed.
    """

    def __init__(
        self,
        tables: Any,
        lr: float = 1e-2,
        *,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
    ) -> None:
        rule = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        self._arrays: dict[int, Array] = {}
        self._steps: dict[int, int] = {}
        super().__init__(tables, {**rule, "initial_accumulator_value": initial_accumulator_value})

    def _begin(self, number: int, table: Table) -> None:
        if number not in self._arrays:
            self._arrays[number] = _new_sums(table.array, float(table.group["initial_accumulator_value"]))
        elif not is_open(self._arrays[number]):
            opened = self._arrays[number].opened
            self._arrays[number] = from_reference(opened.reference(), device=opened.device, writable=True)
        else:
            self._arrays[number].check_calls()

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        array, kept, rule = table.array, self._arrays[number], table.group
        rate = float(rule["lr"]) / (1 + self._steps.get(number, 0) * float(rule["lr_decay"]))
        self._steps[number] = self._steps.get(number, 0) + 1
        sums, weights = kept.gather(rows), array.gather(rows)
        values = values.to(sums.dtype)
        sums.add_(values * values)
        kept.scatter(rows, sums, wait=False)
        changed = weights.to(sums.dtype).add_(values / sums.sqrt_().add_(float(rule["eps"])), alpha=-rate)
        array.scatter(rows, changed.to(weights.dtype), wait=False)

    def close(self) -> None:
        for array in self._arrays.values():
            if array.path is not None:  # what lies in memory would be lost
                array.close()

    def _state(self, number: int) -> dict[str, Any]:
        if number not in self._arrays:
            return {"steps": 0}
        array, steps = self._arrays[number], self._steps.get(number, 0)
        if array.path is None:
            return {"steps": steps, "sums": array.tensor().cpu().clone()}
        if is_open(array):
            array.flush()
        return {"steps": steps, "array": array.opened.reference()}

    def _read_state(self, number: int, state: dict[str, Any]) -> tuple[int, Array | None]:
        array, steps = self._tables[number].array, state.get("steps")
        if not isinstance(steps, int):
            raise ValueError(f"the state of {array!r} in Adagrad's has no 'steps': save it by state_dict()")
        if "array" in state:
            return steps, self._opened_sums(number, array, state["array"])
        if "sums" not in state:
            return steps, None
        sums = _checked_sums(array, state["sums"], array.shape, _sums_kind(array))
        return steps, from_tensor(sums.cpu().clone(), device=array.opened.device)

    def _opened_sums(self, number: int, table: Array, reference: Any) -> Array:
        """Beside the table, if they are there: they may have moved with it."""
        wanted, told = (table.shape, _sums_kind(table)), told_by(reference, "Adagrad's sums")
        if told != wanted:
            raise _wrong_sums(table, *told, *wanted)
        where = reference["path"]
        if table.path is not None and _sums_path(table).exists():
            where = str(_sums_path(table))
        current = self._arrays.get(number)
        if current is not None and current.path == where and is_open(current):
            return current  # a file has one writer
        if not Path(where).exists():
            raise FileNotFoundError(
                f"{where}: the sums of {table!r} are not there: put that file of the checkpoint beside "
                "the table"
            )
        sums = from_reference({**reference, "path": where}, device=table.opened.device, writable=True)
        if (sums.shape, sums.dtype.name) != wanted:
            sums.close()
            raise _wrong_sums(table, sums.shape, sums.dtype.name, *wanted)
        return sums

    def _leave(self, number: int, read: tuple[int, Array | None]) -> None:
        if read[1] is not None and read[1] is not self._arrays.get(number):
            read[1].close()

    def _take_state(self, number: int, read: tuple[int, Array | None]) -> None:
        before = self._arrays.pop(number, None)
        self._steps[number], sums = read
        if sums is not None:
            self._arrays[number] = sums
        if before is not None and before is not sums:
            before.close()


class RowWiseAdagrad(Optimizer):
    """sum += mean of gradient^2 over the row; weight -= lr * gradient / (sqrt(sum) + eps): one number a row
    instead of a row, the usual choice for recommenders (Mudigere et al., ISCA 2022, section 4.1.4). The
    sums lie on the table's device, 4 bytes a row; 8 for a table of float64.
    """

    def __init__(self, tables: Any, lr: float = 1e-2, *, weight_decay: float = 0, eps: float = 1e-8) -> None:
        self._sums: dict[int, Tensor] = {}
        super().__init__(tables, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def _begin(self, number: int, table: Table) -> None:
        if number not in self._sums:
            kind = getattr(torch, _sums_kind(table.array))
            self._sums[number] = torch.zeros(len(table.array), dtype=kind, device=table.array.torch_device)

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        array, sums, rule = table.array, self._sums[number], table.group
        sums.index_add_(0, rows, values.to(sums.dtype).square().mean(dim=1))
        scale = sums[rows].sqrt_().add_(float(rule["eps"]))
        weights = array.gather(rows)
        changed = weights.to(sums.dtype).add_(values / scale[:, None], alpha=-float(rule["lr"]))
        array.scatter(rows, changed.to(weights.dtype), wait=False)

    def _state(self, number: int) -> dict[str, Any]:
        self._begin(number, self._tables[number])
        return {"sums": self._sums[number].clone()}

    def _read_state(self, number: int, state: dict[str, Any]) -> Tensor:
        array = self._tables[number].array
        return _checked_sums(array, state.get("sums"), array.shape[:1], _sums_kind(array))

    def _take_state(self, number: int, read: Tensor) -> None:
        self._sums[number] = read.to(self._tables[number].array.torch_device, copy=True)


def _sums_kind(array: Array) -> str:
    return "float64" if array.dtype.name == "float64" else "float32"


def _wrong_sums(array: Array, shape: Any, kind: Any, *wanted: Any) -> ValueError:
    return ValueError(
        f"sums of {kind} {shape} for {array!r}: it takes those of {wanted[1]} {wanted[0]}: load the state of "
        "the optimizer of this table"
    )


def _checked_sums(array: Array, sums: Any, shape: tuple[int, ...], kind: str) -> Tensor:
    if not isinstance(sums, Tensor):
        raise ValueError(f"the state of {array!r} has no 'sums': save it by state_dict()")
    found = tuple(sums.shape), str(sums.dtype).removeprefix("torch.")
    if found != (shape, kind):
        raise _wrong_sums(array, *found, shape, kind)
    return sums


def _how(array: Array) -> dict[str, Any]:
    return array.opened.placing()


def _sums_path(table: Array) -> Path:
    """A raw file may hold several tables, and lie beside a .npy file of its name."""
    assert table.path is not None
    path = Path(table.path)
    name = path.stem if path.suffix == ".npy" else f"{path.name}.{table.opened.offset}"
    return path.with_name(f"{name}.adagrad.npy")


def _new_sums(array: Array, start: float) -> Array:
    """All `start`, of the array's shape."""
    kind = _sums_kind(array)
    if array.path is None:
        numbers = torch.full(array.shape, start, dtype=getattr(torch, kind))
        return from_tensor(numbers, device=array.opened.device)
    path, how = _sums_path(array), _how(array)
    if path.exists():
        raise FileExistsError(
            f"{path} is there, with the sums of a former run over {array.path} if that made it: load the "
            "state of that run's optimizer, or move the file away to begin anew"
        )
    if start == 0:
        return empty(path, array.shape, kind, **how)
    width = array.shape[1]
    make_table(
        path, array.shape, kind, how, lambda first, n, where: torch.full((n, width), start, device=where)
    )
    return open_array(path, writable=True, **how)
