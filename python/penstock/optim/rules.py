"""What each optimizer does to a row that has a gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from penstock.arrays import Array
from penstock.optim.moments import ElementOptimizer, RowNumbers, kept_kind
from penstock.optim.optimizer import Optimizer, Table


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


class Adagrad(ElementOptimizer):
    """sum += gradient^2; weight -= rate * gradient / (sqrt(sum) + eps), element by element, as
    torch.optim.Adagrad for sparse gradients (Duchi, Hazan, Singer 2011); rate = lr / (1 + k * lr_decay) after
    k steps in which the table had a gradient. Sums begin at initial_accumulator_value.

    The sums are as many numbers as the table, float32 where it has 16 bits (torch's of 16 bits are, and lose
    an eps of 1e-10 and whatever is too small). For a table in a file they lie in a file beside it,
    NAME.adagrad.npy (beside NAME.bin it is NAME.bin.OFFSET.adagrad.npy), behind a cache of the same size; for
    one in memory they lie in host memory. The file is made by the first step, and belongs to a checkpoint as
    the table does. One that is there is never begun anew: `load_state_dict` goes on with it.

    Raises, in a step:
        FileExistsError: there are sums that nobody resumed.
    """

    _FILES: ClassVar[dict[str, str]] = {"sums": "adagrad"}

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
        super().__init__(tables, {**rule, "initial_accumulator_value": initial_accumulator_value})

    def _start(self, table: Table, name: str) -> float:
        return float(table.group["initial_accumulator_value"])

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        array, kept, rule = table.array, self._arrays[number]["sums"], table.group
        rate = float(rule["lr"]) / (1 + (self._steps[number] - 1) * float(rule["lr_decay"]))
        sums, weights = kept.gather(rows), array.gather(rows)
        values = values.to(sums.dtype)
        sums.add_(values * values)
        kept.scatter(rows, sums, wait=False)
        changed = weights.to(sums.dtype).add_(values / sums.sqrt_().add_(float(rule["eps"])), alpha=-rate)
        array.scatter(rows, changed.to(weights.dtype), wait=False)


class RowWiseAdagrad(Optimizer):
    """sum += mean of gradient^2 over the row; weight -= lr * gradient / (sqrt(sum) + eps): one number a row
    instead of a row, the usual choice for recommenders (Mudigere et al., ISCA 2022, section 4.1.4). The
    sums lie on the table's device, 4 bytes a row; 8 for a table of float64.
    """

    def __init__(self, tables: Any, lr: float = 1e-2, *, weight_decay: float = 0, eps: float = 1e-8) -> None:
        self._sums = RowNumbers()
        super().__init__(tables, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        array, rule = table.array, table.group
        sums = self._sums.of(number, array)
        sums.index_add_(0, rows, values.to(sums.dtype).square().mean(dim=1))
        scale = sums[rows].sqrt_().add_(float(rule["eps"]))
        weights = array.gather(rows)
        changed = weights.to(sums.dtype).add_(values / scale[:, None], alpha=-float(rule["lr"]))
        array.scatter(rows, changed.to(weights.dtype), wait=False)

    def _state(self, number: int) -> dict[str, Any]:
        return {"sums": self._sums.of(number, self._tables[number].array).clone()}

    def _read_state(self, number: int, state: dict[str, Any]) -> Tensor:
        return self._sums.read(self._tables[number].array, state, "sums")

    def _take_state(self, number: int, read: Tensor) -> None:
        self._sums.take(number, self._tables[number].array, read)


class _Adam(ElementOptimizer):
    """What both have: betas, and steps that are counted for a whole table."""

    def __init__(
        self, tables: Any, lr: float, betas: tuple[float, float], eps: float, maximize: bool
    ) -> None:
        super().__init__(tables, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _check_rule(self, rule: dict[str, Any]) -> None:
        super()._check_rule(rule)
        betas = rule["betas"]
        pair = isinstance(betas, (tuple, list)) and len(betas) == 2
        if not pair or not all(isinstance(beta, (int, float)) and 0 <= beta < 1 for beta in betas):
            raise ValueError(
                f"{type(self).__name__}: betas {betas!r}: give two numbers from 0 to less than 1"
            )

    def _moment(self, number: int, rows: Tensor, values: Tensor, beta: float) -> Tensor:
        """The first moment of these rows, with this step in it."""
        kept = self._arrays[number]["exp_avg"]
        before = kept.gather(rows)
        # In the order of operations of torch's, for the same bits.
        moment: Tensor = values.sub(before).mul_(1 - beta).add_(before)
        kept.scatter(rows, moment, wait=False)
        return moment

    def _biases(self, number: int, table: Table) -> tuple[float, float]:
        """What the moments of a table that began at zero are divided by."""
        first, second = table.group["betas"]
        return 1 - first ** self._steps[number], 1 - second ** self._steps[number]

    def _store(self, array: Array, rows: Tensor, changes: Tensor) -> None:
        weights = array.gather(rows)
        array.scatter(rows, weights.to(changes.dtype).add_(changes).to(weights.dtype), wait=False)


def _signed(values: Tensor, table: Table) -> Tensor:
    values = values.to(getattr(torch, kept_kind(table.array)))
    return -values if table.group["maximize"] else values


class SparseAdam(_Adam):
    """Adam (Kingma, Ba 2015) for the rows that have a gradient, as torch.optim.SparseAdam: the moments of
    other rows stay as they are, and the bias of both is corrected by the number of steps in which the table
    had a gradient.

    A table of float32 or float64 has the same bits as with torch's, on the CPU. The moments of one of 16 bits
    are float32, where torch's have 16 bits: it is nearer to the exact values.

    Both moments are as many numbers as the table, in files beside it: NAME.exp_avg.npy and
    NAME.exp_avg_sq.npy. They are made by the first step, belong to a checkpoint, and are never begun anew, as
    the sums of `Adagrad`.

    Args:
        tables: as for `Optimizer`.
        lr: the rate, from 0.
        betas: of the first and the second moment, from 0 to less than 1.
        eps: added to the root of the second moment.
        maximize: go up the gradient.
    """

    _FILES: ClassVar[dict[str, str]] = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}

    def __init__(
        self,
        tables: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(tables, lr, betas, eps, maximize)

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        values, (first, second) = _signed(values, table), table.group["betas"]
        moment = self._moment(number, rows, values, first)
        kept = self._arrays[number]["exp_avg_sq"]
        before = kept.gather(rows)
        squares = values.pow(2).sub_(before).mul_(1 - second).add_(before)
        kept.scatter(rows, squares, wait=False)
        bias, bias_sq = self._biases(number, table)
        rate, root = float(table.group["lr"]) * bias_sq**0.5 / bias, squares.sqrt()
        self._store(table.array, rows, -rate * moment.div_(root.add_(float(table.group["eps"]))))


class RowWiseAdam(_Adam):
    """As `SparseAdam`, with one second moment for each row, of the mean of gradient^2 over the row: the
    partial row-wise Adam of FBGEMM and TorchRec, where eps is added to the root after its bias is corrected.
    The first moment lies in NAME.exp_avg.npy beside the table, the second on its device, 4 bytes a row; 8 for
    a table of float64.
    """

    _FILES: ClassVar[dict[str, str]] = {"exp_avg": "exp_avg"}

    def __init__(
        self,
        tables: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        self._squares = RowNumbers()
        super().__init__(tables, lr, betas, eps, maximize)

    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        values, (first, second) = _signed(values, table), table.group["betas"]
        moment = self._moment(number, rows, values, first)
        kept = self._squares.of(number, table.array)
        before = kept[rows]
        squares = values.square().mean(dim=1).sub_(before).mul_(1 - second).add_(before)
        kept[rows] = squares
        bias, bias_sq = self._biases(number, table)
        root = squares.div(bias_sq).sqrt_().add_(float(table.group["eps"]))
        self._store(table.array, rows, -float(table.group["lr"]) / bias * moment.div_(root[:, None]))

    def _state(self, number: int) -> dict[str, Any]:
        squares = self._squares.of(number, self._tables[number].array).clone()
        return {**super()._state(number), "exp_avg_sq": squares}

    def _read_state(self, number: int, state: dict[str, Any]) -> Any:
        squares = self._squares.read(self._tables[number].array, state, "exp_avg_sq")
        return *super()._read_state(number, state), squares

    def _take_state(self, number: int, read: Any) -> None:
        super()._take_state(number, read[:2])
        self._squares.take(number, self._tables[number].array, read[2])
