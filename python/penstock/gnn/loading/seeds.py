"""Nodes that batches are made of, with their labels and times."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from penstock.arguments import is_torch
from penstock.arrays import Array
from penstock.arrays.messages import shown

_MOST = 2**63 - 1


def node_numbers(what: str, given: Any, nodes: int) -> torch.Tensor:
    """int64, in host memory; a mask as the numbers where it is true; None: all."""
    if given is None:
        return torch.arange(nodes)
    if not is_torch(given) and np.asarray(given).dtype.kind not in "iubf":
        raise TypeError(f"loader: {what}: {shown(given)}: give integers, or a mask")
    numbers = given.detach().cpu() if is_torch(given) else torch.as_tensor(given)
    if numbers.dtype == torch.bool:
        if numbers.dim() != 1 or len(numbers) != nodes:
            raise ValueError(
                f"loader: {what}: a mask of shape {tuple(numbers.shape)}: there are {nodes} nodes"
            )
        return numbers.nonzero().reshape(-1)
    if numbers.numel() and (numbers.dtype.is_floating_point or numbers.dtype.is_complex):
        raise TypeError(f"loader: {what} of type {numbers.dtype}: give integers")
    if numbers.dtype == torch.uint8 and len(numbers.reshape(-1)) == nodes > 2 and int(numbers.max()) <= 1:
        raise TypeError(f"loader: {what}: a mask of uint8 would be numbers: give it as bool")
    numbers = integers(what, numbers).reshape(-1)
    check_nodes(what, numbers, nodes)
    return numbers


def check_nodes(what: str, numbers: torch.Tensor, nodes: int) -> None:
    """Errors: IndexError for one that is no node."""
    if numbers.numel():
        least, most = (int(each) for each in torch.aminmax(numbers))
        if least < 0 or most >= nodes:
            wrong = least if least < 0 else most
            raise IndexError(f"loader: {what}: {wrong} is no node: give numbers from 0 to {nodes - 1}")


def checked_times(what: str, given: Any, count: int, items: str, needed: bool) -> torch.Tensor | None:
    """int64, in host memory. needed: whether the graph has times."""
    if not needed:
        if given is not None:
            raise ValueError(f"loader: {what} for a graph without times: leave them out")
        return None
    if given is None:
        raise ValueError(f"loader: the graph has times: give {what}, one for each of {count} {items}")
    times = integers(what, given)
    if times.dim() != 1 or len(times) != count:
        raise ValueError(
            f"loader: {what} of shape {tuple(times.shape)} for {count} {items}: give one for each"
        )
    return times


def integers(what: str, given: Any) -> torch.Tensor:
    """int64, in host memory.

    Errors: TypeError for what is no integers, ValueError for one beyond int64.
    """
    values = given.detach().cpu().numpy() if is_torch(given) else np.asarray(given)
    if values.size == 0:
        return torch.zeros(values.shape, dtype=torch.int64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"loader: {what} of type {values.dtype}: give integers")
    if values.dtype == np.uint64 and int(values.max()) > _MOST:
        raise ValueError(f"loader: {what}: {values.max()}: give numbers up to {_MOST}")
    return torch.as_tensor(values.astype(np.int64))


class Seeds:
    """Nodes of one type."""

    def __init__(self, given: Any, nodes: int, labels: Any, times: Any, has_times: bool) -> None:
        """
        Args:
            given: Integers or a mask; None: all.
            nodes: How many the type has.
            labels: A value for each of them, or None.
            times: One for each seed, where the graph has times.
        """
        self.numbers = node_numbers("seeds", given, nodes)
        self._labels = _checked_labels(labels, nodes)
        self._times = checked_times("seed_times", times, len(self.numbers), "seeds", has_times)

    def __len__(self) -> int:
        return len(self.numbers)

    def times(self, places: torch.Tensor) -> torch.Tensor | None:
        return None if self._times is None else self._times[places]

    def labels(self, nodes: torch.Tensor, device: torch.device) -> torch.Tensor | None:
        labels = self._labels
        if labels is None:
            return None
        if isinstance(labels, Array):
            taken: torch.Tensor = labels.gather(nodes)
        elif is_torch(labels):
            taken = labels[nodes.to(labels.device)]
        else:
            numbers: np.ndarray[Any, Any] = nodes.cpu().numpy()
            taken = torch.as_tensor(labels[numbers])
        return taken.to(device)


def _checked_labels(labels: Any, nodes: int) -> Any:
    if labels is None:
        return None
    if isinstance(labels, (list, tuple)):
        labels = np.asarray(labels)
    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "iubf":
        raise TypeError(f"loader: labels of type {labels.dtype}: give numbers")
    if not isinstance(labels, Array) and not hasattr(labels, "__getitem__"):
        raise TypeError(f"loader: labels: {shown(labels)}: give an array or a tensor")
    if len(labels) != nodes:
        raise ValueError(f"loader: {len(labels)} labels: the graph has {nodes} nodes: give one for each")
    return labels
