"""Modules over a table: how one takes it, refers to it in states, and is copied with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from penstock.arrays import Array, from_reference
from penstock.arrays import operators as ops
from penstock.nn import table_files
from penstock.nn.copies import copied_array
from penstock.nn.generations import check_generation, number_changes, saved_mark
from penstock.nn.table_files import is_open, name_of

if TYPE_CHECKING:
    from collections.abc import Callable


class TableModule(nn.Module):
    """Base of `Embedding`, which sets all that is not set here."""

    padding_idx: int | None
    freeze: bool
    _drawn: bool  # just now: its numbers are those of no state

    # States

    def get_extra_state(self) -> dict[str, Any]:
        if self._array.path is None:
            raise ValueError(f"{self._array!r}: a table in memory has no path to refer to: save it to a file")
        self._array.flush()
        return self._array.opened.reference() | {"generation": saved_mark(self._array)}

    def set_extra_state(self, state: Any) -> None:
        dtype, shape = self._array.dtype, self._array.shape
        referred = table_files.referred_by(state, "embedding")
        if referred != (shape, dtype.name):
            raise ValueError(
                f"the state is of a table of {referred[1]} {referred[0]} at {state['path']}, this one is "
                f"of {dtype} {shape}: give it the state of such a table"
            )
        if is_open(self._array):
            self._check_is_meant(state["path"])
            check_generation(state.get("generation"), self._array, "load the state")
            return
        there = from_reference(state, device=self._array.opened.device, writable=not self.freeze)
        try:
            check_generation(state.get("generation"), there, "load the state")
            self._take(there, shape)
        except BaseException:
            there.close()
            raise

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        number_changes(self._array)
        self._name = ops.name_table(self)  # a copy is another table to the operators

    def __deepcopy__(self, memo: dict[int, Any]) -> TableModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        nn.Module.__init__(made)
        array = copied_array(self._array, self.freeze, memo)
        own = {"_array": array, "_anchor": None, "_kept": None, "_checks": None, "_name": None, "_what": None}
        for key, value in self.__dict__.items():
            if key not in own:
                made.__dict__[key] = copy.deepcopy(value, memo)
        made._take(array, array.shape)
        made._begin()
        return made

    # Its table

    def _begin(self) -> None:
        """What a module has from when its table is there."""
        self._what = f"{type(self).__name__} over {name_of(self._array)}"
        self._name = ops.name_table(self)
        # On the CPU whatever torch.set_default_device says: it is only looked at.
        self._anchor = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=not self.freeze)
        self._kept: list[tuple[Tensor, Tensor]] = []
        self._checks: list[Callable[[], None]] = []  # of calls that a GPU has not answered yet

    def _take(self, array: Array, shape: tuple[int, ...]) -> None:
        if array.shape != shape:
            raise ValueError(f"{array!r}: the embedding has shape {shape}: give the shape of the table")
        if not (self.freeze or array.writable):
            raise ValueError(
                f"{array!r}: it is read-only, and cannot be trained: open it as writable, or freeze=True"
            )
        if not (self.freeze or getattr(torch, array.dtype.name).is_floating_point):
            raise ValueError(
                f"{array!r}: a table of {array.dtype} is not trained: give one of floating-point numbers, or "
                "freeze=True"
            )
        number_changes(array)
        self._array = array

    def _check_is_meant(self, path: str) -> None:
        """A state holds no numbers: those of the table that is open must be the ones that it refers to."""
        own = self._array.path
        if own is None:
            raise ValueError(
                f"the state refers to the table at {path}, and this embedding has one in memory: make it "
                "over that file"
            )
        if self._drawn and own != path:
            raise ValueError(
                f"the state refers to the table at {path}, and {own} was drawn anew: make the embedding with "
                "the path where the table lies"
            )

    def _opened(self, path: Path, shape: tuple[int, int], dtype: Any, how: dict[str, Any]) -> Array:
        if not path.exists():
            table_files.draw_table(path, shape, dtype, how, self.padding_idx)
            self._drawn = True
        return table_files.open_table(path, dtype, not self.freeze, how)
