"""What optimizers of tables share: groups, steps, and states that are checked before they are taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from penstock.arrays import Array
from penstock.arrays.untraced import leave_untraced
from penstock.nn.embedding import Embedding
from penstock.nn.generations import check_generation, saved_mark
from penstock.nn.gradients import joined, summed

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Table:
    """An array, the modules over it, and the group that says how it is trained."""

    modules: list[Embedding]
    group: dict[str, Any]

    @property
    def array(self) -> Array:
        array = self.modules[0].array
        if any(module.array is not array for module in self.modules):
            raise ValueError(
                f"{array!r}: its modules had one table and have several now: make a new optimizer"
            )
        return array

    @property
    def has_gradient(self) -> bool:
        return any(module.has_gradient for module in self.modules)

    def check_errors(self) -> None:
        """As that of a module; of all modules."""
        for module in self.modules:
            module.check_errors()

    def parts(self) -> tuple[Tensor, Tensor]:
        """As those of a module that has a gradient; of all modules."""
        found = [parts for module in self.modules if (parts := module.parts()) is not None]
        return joined(found)

    def changes(self) -> tuple[Tensor, Tensor]:
        return summed(*self.parts(), len(self.array))


def _trained_in(given: nn.Module | Iterable[nn.Module]) -> list[Embedding]:
    modules = list(given) if isinstance(given, Iterable) and not isinstance(given, nn.Module) else [given]
    for module in modules:
        if not isinstance(module, nn.Module):
            raise TypeError(
                "an optimizer of penstock.optim takes modules, and finds the tables in them: not a "
                f"{type(module).__name__}: what has parameters goes to one of torch.optim"
            )
    found = [m for module in modules for m in module.modules() if isinstance(m, Embedding) and not m.freeze]
    if not found:
        raise ValueError(
            "there is no penstock.nn.Embedding to train: give the model that holds one, unfrozen"
        )
    return list(dict.fromkeys(found))


def _groups_in(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, (nn.Module, Tensor, Iterable)):
        raise TypeError(
            f"an optimizer of penstock.optim takes modules, not a {type(given).__name__}: give the model"
        )
    several = [] if isinstance(given, (nn.Module, Tensor)) else list(given)
    return several if several and isinstance(several[0], dict) else [{"params": several or given}]


_NOT_SPARSE = ("weight_decay", "momentum")


def _refuse_what_is_not_sparse(rule: dict[str, Any]) -> None:
    for name in _NOT_SPARSE:
        if rule.get(name, 0) != 0:
            raise ValueError(
                f"{name} {rule[name]}: it changes every row of a table in each step, and only those that "
                "have a gradient are touched: leave it at 0"
            )


class Optimizer(torch.optim.Optimizer, ABC):
    """What the three share: a torch.optim.Optimizer, for the schedulers of torch.optim.lr_scheduler and the
    hooks of steps, whose parameters stand for tables.

    tables: a module, or several, whose unfrozen embeddings are trained; or groups of them, each a dict with
    "params" (modules) and rules of its own, such as "lr". In param_groups each embedding is its `anchor`, a
    tensor of one number that autograd knows it by. Modules over one array are one table, with one gradient.

    Without a meaning for tables, and refused: weight_decay, momentum, torch.amp.GradScaler.
    """

    _step_supports_amp_scaling = True  # so that a GradScaler hands itself in, and can be refused

    def __init__(self, tables: Any, rule: dict[str, Any]) -> None:
        self._tables: list[Table] = []
        super().__init__(_groups_in(tables), rule)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """A group more, as those that an optimizer is made of."""
        modules = _trained_in(param_group["params"])
        over: dict[int, list[Embedding]] = {}
        for module in modules:
            over.setdefault(id(module.array), []).append(module)
        if any(id(table.array) in over for table in self._tables):
            raise ValueError("a table is in two groups: give it to one")
        self._check_rule({**self.defaults, **param_group})
        super().add_param_group({**param_group, "params": [module.anchor for module in modules]})
        self._tables += [Table(tied, self.param_groups[-1]) for tied in over.values()]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the rows that have a gradient. closure: computes the loss, and the gradients, anew; what it
        gives is returned."""
        self._refuse_scaler()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:  # schedulers set a momentum, too
            _refuse_what_is_not_sparse(group)
        self._change_tables()
        return loss

    def _change_tables(self) -> None:
        trained = [(number, table) for number, table in enumerate(self._tables) if table.has_gradient]
        for number, table in trained:  # what cannot begin is raised before anything is changed
            table.check_errors()
            self._begin(number, table)
        for number, table in trained:
            self._counted(number)
            rows, values = self._changes(table)
            if len(rows) != 0:
                self._change(number, table, rows, values)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients, of all tables."""
        super().zero_grad(set_to_none)
        for table in self._tables:
            for module in table.modules:
                module.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """The rules of the groups, and what was gathered of the past: small tensors themselves, what is as
        large as a table by its path, flushed. Hooks of state_dict are called as torch calls them."""
        for before in self._optimizer_state_dict_pre_hooks.values():
            before(self)
        tables = [
            {**self._state(number), "generation": saved_mark(table.array)}
            for number, table in enumerate(self._tables)
        ]
        groups = [
            {**group, "params": members}
            for group, members in zip(self.param_groups, self._members(), strict=True)
        ]
        state = {"optimizer": type(self).__name__, "param_groups": groups, "tables": tables}
        for after in self._optimizer_state_dict_post_hooks.values():
            changed = after(self, state)
            state = state if changed is None else changed
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another stopped, with its rules. Nothing is changed by a state that does not fit.
        Hooks of load_state_dict are called as torch calls them: those before get a shallow copy of the state.

        Raises:
            ValueError: the state of another kind of optimizer, of other tables, or of tables that have
                changed since it was saved.
        """
        if isinstance(state, dict):
            state = state.copy()
            for before in self._optimizer_load_state_dict_pre_hooks.values():
                changed = before(self, state)
                state = state if changed is None else changed
        self._check_state(state)
        self._load(state)
        for after in self._optimizer_load_state_dict_post_hooks.values():
            after(self)

    def _load(self, state: dict[str, Any]) -> None:
        read = []
        try:
            for number, one in enumerate(state["tables"]):
                read.append(self._read_state(number, one))
        except BaseException:
            for number, one in enumerate(read):
                self._leave(number, one)
            raise
        for number, one in enumerate(read):
            self._take_state(number, one)
        for group, saved in zip(self.param_groups, state["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})

    def close(self) -> None:
        """Gives back what it opened; the tables are not its own. It may step again: it opens them again."""

    def __getstate__(self) -> Any:
        raise TypeError(f"{type(self).__name__} is not copied or pickled: save its state_dict()")

    def _check_rule(self, rule: dict[str, Any]) -> None:
        """ValueError for numbers by which nothing can be trained."""
        for name in ("lr", "lr_decay", "initial_accumulator_value", "eps"):
            if name not in rule:
                continue
            if not isinstance(rule[name], (Real, Tensor)):
                raise TypeError(f"{type(self).__name__}: {name} {rule[name]!r}: give a number of at least 0")
            if not rule[name] >= 0:
                raise ValueError(f"{type(self).__name__}: {name} {rule[name]}: give a number of at least 0")
        _refuse_what_is_not_sparse(rule)

    def _refuse_scaler(self) -> None:
        if "found_inf" in self.__dict__:
            self.__dict__.pop("grad_scale", None)
            del self.__dict__["found_inf"]
            raise ValueError(
                "a GradScaler sees no gradients of tables: train them with a loss that is not scaled, in "
                "bfloat16 where there is autocast"
            )

    def _check_state(self, state: Any) -> None:
        mine, names = type(self).__name__, ("optimizer", "param_groups", "tables")
        missing = [name for name in names if not isinstance(state, dict) or name not in state]
        if missing:
            raise ValueError(f"the state of {mine} has {', '.join(names)}: this one has no {missing[0]!r}")
        if state["optimizer"] != mine:
            raise ValueError(f"the state of {state['optimizer']}: this optimizer is {mine}")
        for name, own in ("tables", self._tables), ("param_groups", self.param_groups):
            if len(state[name]) != len(own):
                raise ValueError(
                    f"a state of {len(state[name])} {name}: this optimizer has {len(own)}: make it of the "
                    "same tables"
                )
        for members, saved in zip(self._members(), state["param_groups"], strict=True):
            absent = [name for name in ("params", *self.defaults) if name not in saved]
            if absent:
                raise ValueError(
                    f"a group in the state of {mine} has no {absent[0]!r}: save it by state_dict()"
                )
            if list(saved["params"]) != members:
                raise ValueError(
                    f"a group of the state is of tables {list(saved['params'])}, here of {members}: make the "
                    "optimizer of the same tables in the same order"
                )
            self._check_rule(saved)
        for table, one in zip(self._tables, state["tables"], strict=True):
            if not isinstance(one, dict):
                raise ValueError(f"the state of {mine} has {one!r} for a table: save it by state_dict()")
            check_generation(one.get("generation"), table.array, f"load the state of {mine}")

    def _members(self) -> list[list[int]]:
        """The tables of each group, by their numbers."""
        return [
            [number for number, table in enumerate(self._tables) if table.group is group]
            for group in self.param_groups
        ]

    def _changes(self, table: Table) -> tuple[Tensor, Tensor]:
        return table.changes()

    @abstractmethod
    def _change(self, number: int, table: Table, rows: Tensor, values: Tensor) -> None:
        """Stores the rows changed; values: their gradients."""

    # What was gathered of the past: nothing, unless a rule has more to say.

    def _begin(self, number: int, table: Table) -> None:
        """Makes ready what a table's change needs of the past."""

    def _counted(self, number: int) -> None:
        """A step in which a table has a gradient, be it of no rows."""

    def _state(self, number: int) -> dict[str, Any]:
        return {}

    def _read_state(self, number: int, state: dict[str, Any]) -> Any:
        """What a table's state says, checked and opened; nothing of the optimizer changes."""

    def _leave(self, number: int, read: Any) -> None:
        """Gives back what was read and is not taken."""

    def _take_state(self, number: int, read: Any) -> None:
        """Puts what was read in the place of what there is."""


leave_untraced(Optimizer, "_change_tables", "state_dict", "load_state_dict")
