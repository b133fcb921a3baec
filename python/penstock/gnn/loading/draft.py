"""What sampling hands on to gathering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Draft:
    """A batch that lacks the rows of its nodes and edges."""

    number: int
    """Of the batch in its epoch."""
    wanted: Mapping[Any, Any]
    """Numbers of the rows by kind: int64 tensors on the loader's device."""
    finished: Callable[[dict[Any, dict[str, Any]]], Any]
    """The batch, of the rows by kind and name."""
