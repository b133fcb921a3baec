"""Times of nodes and edges in a feature store, which may be too many for memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from penstock.arrays import Array
from penstock.arrays.devices import executor_for
from penstock.pyg.stores import FeatureStore

_AT_ONCE = 1 << 20


def times_in(features: Any, group: Any, name: str) -> Any:
    """A tensor, or of an array behind a cache what takes the place of one."""
    if isinstance(features, FeatureStore):
        array = features.array(group, name)
        if array.placement not in ("host", "hbm"):
            return StoredTimes(array)
    return features.get_tensor(group, name, None)


def as_list(times: Any, device: Any) -> Any:
    """Of a graph on a device, as it takes them."""
    return times.on(device) if isinstance(times, StoredTimes) else times


class StoredTimes:
    """What samplers of PyG ask of a tensor of times, by an array that is read where it lies."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def device(self) -> Any:
        return self._array.device

    def __getitem__(self, nodes: Tensor) -> Tensor:
        """On the device of `nodes`, in their shape."""
        taken: Tensor = self._array.gather(nodes.reshape(-1))
        return taken.reshape(nodes.shape).to(nodes.device)

    def argmin(self) -> Tensor:
        return self._earliest

    @cached_property
    def _earliest(self) -> Tensor:
        parts = range(0, len(self._array), _AT_ONCE)
        found = [self._array[first : first + _AT_ONCE].min(0) for first in parts]
        part = int(torch.stack([each.values for each in found]).argmin())
        return found[part].indices.cpu() + parts[part]

    def on(self, device: Any) -> Any:
        """The array; for another device a copy in memory.

        Raises:
            MemoryError: No room for the copy.
        """
        return self._array if self._array._executor is executor_for(device) else np.asarray(self._array)
