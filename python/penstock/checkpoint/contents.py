"""What a checkpoint is of: a model, its optimizers and the tables that are trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from penstock.arrays import Array
from penstock.nn.embedding import Embedding
from penstock.optim.optimizer import Optimizer


def optimizers_by_name(optimizers: Any) -> dict[str, Any]:
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


def checked_model(model: Any) -> nn.Module:
    if model is None:
        return nn.Module()
    if not isinstance(model, nn.Module):
        raise TypeError(f"a checkpoint of a {type(model).__name__}: give a torch.nn.Module as model")
    return model


def tables_of(model: nn.Module) -> dict[str, Array]:
    """The arrays that are trained, each by the name of the first module that has it."""
    embeddings = {name: one for name, one in model.named_modules() if isinstance(one, Embedding)}
    named = {name: one for name, one in embeddings.items() if not one.freeze}
    each: dict[int, str] = {}
    for name, one in named.items():
        each.setdefault(id(one.array), name)
    return {name: named[name].array for name in each.values()}


def check_known(tables: dict[str, Array], optimizers: dict[str, Any]) -> None:
    known = [id(array) for array in tables.values()]
    for name, one in optimizers.items():
        for table in one._tables if isinstance(one, Optimizer) else ():
            if id(table.array) not in known:
                raise ValueError(
                    f"a checkpoint with optimizer {name}, which trains {table.array!r}: the model does not "
                    "hold that "
                    "table: give a model that does"
                )


def name_in(tables: dict[str, Array], array: Array) -> str:
    return next(name for name, each in tables.items() if each is array)
