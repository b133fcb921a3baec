"""Optimizers for `penstock.nn` tables: each step reads the rows that have a gradient, and stores them
changed.

They take tables and nothing else: a model's other parameters have an optimizer of torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from penstock.arrays import Array, empty, from_reference, from_tensor
from penstock.nn.embedding import Embedding

if TYPE_CHECKING:
    from collections.abc import Iterable


def _tables(given: nn.Module | Iterable[nn.Module]) -> list[Embedding]:
    modules = [given] if isinstance(given, nn.Module) else list(given)
    found = [m for module in modules for m in module.modules() if isinstance(m, Embedding) and not m.freeze]
    if not found:
        raise ValueError(
            "there is no penstock.nn.Embedding to train: give the model that holds one, unfrozen"
        )
    return list(dict.fromkeys(found))


def _checked(name: str, value: float, least: float = 0.0) -> float:
    if not value >= least:
        raise ValueError(f"{name} {value}: give a number of at least {least}")
    return float(value)


class Optimizer(ABC):
    """What the three share. tables: a module, or several, whose unfrozen embeddings are trained."""

    def __init__(self, tables: nn.Module | Iterable[nn.Module], lr: float) -> None:
        self.lr = _checked("lr", lr)
        self._tables = _tables(tables)

    @torch.no_grad()
    def step(self) -> None:
        """Changes the rows that have a gradient."""
        for number, table in enumerate(self._tables):
            changes = self._changes(table)
            if changes is not None and len(changes[0]) != 0:
                self._change(number, table, *changes)

    def zero_grad(self) -> None:
        """Forgets the gradients, of all tables."""
        for table in self._tables:
            table.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """lr, and what was gathered of the past: small tensors themselves, what is as large as a table by its
        path, flushed."""
        return {"lr": self.lr, "tables": [self._state(k) for k in range(len(self._tables))]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["tables"]) != len(self._tables):
            raise ValueError(
                f"a state of {len(state['tables'])} tables: this optimizer has {len(self._tables)}"
            )
        self.lr = _checked("lr", state["lr"])
        for number, one in enumerate(state["tables"]):
            self._set_state(number, one)

    def _changes(self, table: Embedding) -> tuple[Tensor, Tensor] | None:
        return table.changes()

    @abstractmethod
    def _change(self, number: int, table: Embedding, rows: Tensor, values: Tensor) -> None:
        """Stores the rows changed; values: their gradients."""

    def _state(self, number: int) -> dict[str, Any]:
        return {}

    def _set_state(self, number: int, state: dict[str, Any]) -> None:
        if state:
            raise ValueError(
                f"{type(self).__name__} keeps nothing of the past: this state is another optimizer's"
            )


class SGD(Optimizer):
    """weight -= lr * gradient, as torch.optim.SGD without momentum for sparse gradients.

    As there, what a row is to change by is added as often as the row was asked for, in no order: a run may
    differ from another in the last bits. With `torch.use_deterministic_algorithms(True)`, and for tables of
    16 bits, gradients are summed first.
    """

    def _changes(self, table: Embedding) -> tuple[Tensor, Tensor] | None:
        return table.parts() if _adds(table) else table.changes()

    def _change(self, number: int, table: Embedding, rows: Tensor, values: Tensor) -> None:
        if _adds(table):
            table.array.scatter(rows, values * -self.lr, reduce="add")
        else:
            weights = table.array.gather(rows)
            table.array.scatter(rows, weights.add_(values, alpha=-self.lr))


def _adds(table: Embedding) -> bool:
    if torch.are_deterministic_algorithms_enabled():
        return False
    return table.array.dtype.name in ("float32", "float64")


class Adagrad(Optimizer):
    """sum += gradient^2; weight -= lr * gradient / (sqrt(sum) + eps), element by element, as
    torch.optim.Adagrad for sparse gradients (Duchi, Hazan, Singer 2011).

    The sums are as large as the table: for one in a file they lie in a file beside it, NAME.adagrad.npy
    (beside NAME.bin it is NAME.bin.OFFSET.adagrad.npy), behind a cache of the same size; for one in memory
    they lie in host memory. They begin at zero with the first step, unless `load_state_dict` names those of
    a former run.
    """

    def __init__(self, tables: nn.Module | Iterable[nn.Module], lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(tables, lr)
        self.eps = _checked("eps", eps)
        self._arrays: dict[int, Array] = {}

    def _change(self, number: int, table: Embedding, rows: Tensor, values: Tensor) -> None:
        if number not in self._arrays:
            self._arrays[number] = _new_sums(table.array)
        array = self._arrays[number]
        sums = array.gather(rows).add_(values * values)
        array.scatter(rows, sums)
        weights = table.array.gather(rows)
        table.array.scatter(rows, weights.add_(values / sums.sqrt_().add_(self.eps), alpha=-self.lr))

    def _state(self, number: int) -> dict[str, Any]:
        if number not in self._arrays:
            return {}
        array = self._arrays[number]
        array.flush()
        if array.path is None:
            return {"sums": array.tensor().cpu().clone()}
        return {"array": array.opened.reference()}

    def _set_state(self, number: int, state: dict[str, Any]) -> None:
        old = self._arrays.pop(number, None)
        if old is not None:
            old.close()
        table = self._tables[number].array
        if "array" in state:
            self._arrays[number] = from_reference(state["array"], device=table.opened.device, writable=True)
        elif "sums" in state:
            self._arrays[number] = from_tensor(state["sums"].clone(), device=table.opened.device)


class RowWiseAdagrad(Optimizer):
    """sum += mean of gradient^2 over the row; weight -= lr * gradient / (sqrt(sum) + eps): one number a row
    instead of a row, the usual choice for recommenders (Mudigere et al., ISCA 2022, section 4.1.4). The
    sums lie on the table's device, 4 bytes a row.
    """

    def __init__(self, tables: nn.Module | Iterable[nn.Module], lr: float = 1e-2, eps: float = 1e-8) -> None:
        super().__init__(tables, lr)
        self.eps = _checked("eps", eps)
        self._sums = [
            torch.zeros(table.num_embeddings, device=table.array.torch_device) for table in self._tables
        ]

    def _change(self, number: int, table: Embedding, rows: Tensor, values: Tensor) -> None:
        sums = self._sums[number]
        sums.index_add_(0, rows, values.float().square().mean(dim=1))
        scale = sums[rows].sqrt_().add_(self.eps)
        weights = table.array.gather(rows)
        table.array.scatter(rows, weights.add_(values / scale[:, None], alpha=-self.lr).to(values.dtype))

    def _state(self, number: int) -> dict[str, Any]:
        return {"sums": self._sums[number].clone()}

    def _set_state(self, number: int, state: dict[str, Any]) -> None:
        self._sums[number].copy_(state["sums"])


def _how(array: Array) -> dict[str, Any]:
    return {name: getattr(array.opened, name) for name in ("placement", "device", "cache", "line")}


def _sums_path(path: str, offset: int) -> Path:
    """A raw file may hold several tables, and lie beside a .npy file of its name."""
    table = Path(path)
    name = table.stem if table.suffix == ".npy" else f"{table.name}.{offset}"
    return table.with_name(f"{name}.adagrad.npy")


def _new_sums(array: Array) -> Array:
    """Zeros of the array's shape."""
    if array.path is None:
        kind = getattr(torch, array.dtype.name)
        return from_tensor(torch.zeros(array.shape, dtype=kind), device=array.opened.device)
    path = _sums_path(array.path, array.opened.offset)
    path.unlink(missing_ok=True)  # of a former run, which nobody resumed
    return empty(path, array.shape, array.dtype, **_how(array))
