"""Features of nodes and edges by type and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from penstock.arguments import is_torch
from penstock.arrays import Array, from_tensor, gather_all
from penstock.arrays.messages import shown


class Tables:
    """Arrays of the nodes or edges of a type, whose rows of a batch are gathered together."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._arrays: dict[tuple[Any, str], Array] = {}

    def add(self, kind: Any, name: str, what: str, given: Any, rows: int) -> Array:
        """A table of a row for each.

        Args:
            kind: Of nodes or edges.
            name: Of the table.
            what: What errors name.
            given: An Array, a tensor or a NumPy array.
        """
        array: Array = given
        if not isinstance(given, Array):
            if not is_torch(given) and not hasattr(given, "__array__"):
                raise TypeError(f"loader: {what}: {shown(given)}: give a penstock.Array or a tensor")
            placement = "hbm" if is_torch(given) and given.is_cuda else "host"
            name_of_device = "cpu" if self._device.type == "cpu" else str(self._device)
            try:
                array = from_tensor(given, placement, device=name_of_device)
            except (TypeError, ValueError) as problem:
                reason = str(problem).removeprefix("from_tensor: ")
                raise type(problem)(f"loader: {what}: {reason}") from None
        if len(array) != rows:
            raise ValueError(f"loader: {what} of {len(array)} rows: the graph has {rows}: give one for each")
        if array.device != self._device:
            raise ValueError(
                f"loader: {what} on {array.device}, and the graph on {self._device}: open both alike"
            )
        self._arrays[kind, name] = array
        return array

    def add_features(self, kind: Any, what: str, given: Any, nodes: int) -> None:
        """One table, or several by name, one of them "x"."""
        named = given if isinstance(given, Mapping) else {"x": given}
        if "x" not in named:
            raise ValueError(f"loader: {what} {', '.join(map(str, named))}: name one of them x")
        for name, table in named.items():
            self.add(kind, name, f"{what} {name}", table, nodes)

    def gather(self, numbers: Mapping[Any, Any], sms: int) -> dict[Any, dict[str, torch.Tensor]]:
        """Rows of all tables, in one launch where they lie in memory.

        Args:
            numbers: Of the rows, by kind.
            sms: Multiprocessors at most; 0: all.

        Returns:
            By kind and name; nothing of a kind without tables.
        """
        wanted = [(array, numbers[kind]) for (kind, _), array in self._arrays.items()]
        found: dict[Any, dict[str, torch.Tensor]] = {}
        rows = gather_all(wanted, sms=sms) if wanted else []
        for (kind, name), each in zip(self._arrays, rows, strict=True):
            found.setdefault(kind, {})[name] = each
        return found

    def bytes_by_tier(self) -> dict[str, int]:
        """Bytes that were read, by where they came from."""
        moved: dict[str, int] = {}
        for array in self._arrays.values():
            for tier, count in array.bytes_by_tier().items():
                moved[tier] = moved.get(tier, 0) + count
        return moved
