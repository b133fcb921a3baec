"""Clipping of gradients, of parameters and of tables together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from penstock.checks import checked_number
from penstock.nn.embedding import Embedding
from penstock.nn.gradients import joined, summed


def _members(given: Any) -> tuple[list[Tensor], list[Embedding]]:
    """The parameters and the tables in modules and tensors, each once."""
    several = given if isinstance(given, Iterable) and not isinstance(given, (Tensor, nn.Module)) else [given]
    parameters: dict[int, Tensor] = {}
    tables: dict[int, Embedding] = {}
    for one in several:
        if isinstance(one, Tensor):
            parameters[id(one)] = one
        elif isinstance(one, nn.Module):
            parameters.update((id(each), each) for each in one.parameters())
            tables.update((id(each), each) for each in one.modules() if isinstance(each, Embedding))
        else:
            raise TypeError(
                f"clip_grad_norm_ of a {type(one).__name__}: give modules, which may hold tables, and "
                "parameters"
            )
    return list(parameters.values()), list(tables.values())


def _gradients_of(tables: list[Embedding]) -> list[Tensor]:
    """What is added to the rows of each array, summed over the modules that share it."""
    found: dict[int, list[tuple[Tensor, Tensor]]] = {}
    rows: dict[int, int] = {}
    for table in tables:
        parts = table.parts()
        if parts is not None:
            found.setdefault(id(table.array), []).append(parts)
            rows[id(table.array)] = table.num_embeddings
    return [summed(*joined(parts), rows[key])[1] for key, parts in found.items()]


def _dense(gradient: Tensor) -> Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


@torch.no_grad()
def clip_grad_norm_(
    modules: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scales gradients so that the norm of all of them together is at most `max_norm`: what
    `torch.nn.utils.clip_grad_norm_` does for parameters, for parameters and tables of Penstock.

    Args:
        modules: a module, or several, and parameters. The gradients of all parameters and tables in them are
            one vector; modules over one array have one gradient, the sum of theirs.
        max_norm: the largest norm that is left.
        norm_type: p of the p-norm; may be inf.
        error_if_nonfinite: raise where the norm is nan or inf.

    Returns:
        The norm before, a tensor of one number on the device of the first gradient; 0 without gradients.

    Raises:
        TypeError: for what is neither module nor parameter.
        ValueError: a max_norm below 0.
        RuntimeError: as torch, a norm that is not finite with `error_if_nonfinite`; nothing is scaled.
        IndexError: as `Embedding.gradient`.
    """
    if not checked_number("clip_grad_norm_: max_norm", max_norm) >= 0:
        raise ValueError(f"clip_grad_norm_: max_norm {max_norm}: give a number from 0")
    norm_type = float(norm_type)  # also "inf", as torch
    parameters, tables = _members(modules)
    dense = [each.grad for each in parameters if each.grad is not None]
    gradients = [_dense(each) for each in dense] + _gradients_of(tables)
    if not gradients:
        return torch.tensor(0.0)
    norms = [torch.linalg.vector_norm(each, norm_type) for each in gradients if each.numel() != 0]
    first = gradients[0].device
    total: Tensor = torch.linalg.vector_norm(
        torch.stack([norm.to(first) for norm in norms] or [torch.zeros((), device=first)]), norm_type
    )
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"clip_grad_norm_: the norm of order {norm_type} of the gradients is {float(total)}: look for "
            "what makes it so, or pass error_if_nonfinite=False to scale by it all the same"
        )
    by = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for each in dense:
        each.mul_(by.to(each.device, each.dtype))
    for table in tables:
        table.scale_gradient(by)
    return total
