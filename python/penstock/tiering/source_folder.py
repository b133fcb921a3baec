"""The files of a graph whose nodes are to be numbered anew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from penstock.arrays.messages import naming, shown_path
from penstock.tiering.npy_files import Values, mapped

FACTS = "dataset.json"
_SPLITS = ("train", "valid", "test")
_OF_EDGES = {"weights": ("float32", "float64"), "relations": ("uint8",)}


class SourceFolder:
    """The files of a folder, mapped, with shapes and types checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pointers = self._list("pointers", ("int64",))
        self.neighbors = self._list("neighbors", ("int32", "int64"))
        self.nodes, self.edges = len(self.pointers) - 1, len(self.neighbors)
        if self.nodes < 0:
            raise self.wrong("pointers", "it has no element")
        values = {name: self._list(name, dtypes, self.edges) for name, dtypes in _OF_EDGES.items()}
        self.of_edges = {name: each for name, each in values.items() if each is not None}
        self.rows = {name: rows for name in ("features", "labels") if (rows := self._rows(name)) is not None}
        lists = {name: self._list(name, ("int32", "int64")) for name in _SPLITS if self._has(name)}
        self.splits = {name: np.array(ids) for name, ids in lists.items()}
        self.facts = self._read_facts()

    @property
    def arrays(self) -> list[Values]:
        return [self.pointers, self.neighbors, *self.of_edges.values(), *self.rows.values()]

    @property
    def nbytes(self) -> int:
        """What the new folder takes."""
        splits = sum(8 * len(ids) for ids in self.splits.values())
        return sum(array.nbytes for array in self.arrays) + 8 * self.nodes + splits

    def wrong(self, name: str, what: str) -> ValueError:
        path = shown_path(str(self.folder / f"{name}.npy"))
        return ValueError(f"open {path}: {what}: make the dataset anew")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.folder / f"{name}.npy")

    def _list(self, name: str, dtypes: tuple[str, ...], length: int | None = None) -> Any:
        """One dimension of some type; None where there is no file, but for pointers and neighbors."""
        if not self._has(name) and name not in ("pointers", "neighbors"):
            return None
        values = mapped(self.folder / f"{name}.npy")
        if values.ndim != 1 or values.dtype.name not in dtypes:
            raise self.wrong(
                name, f"it has {values.dtype} of shape {values.shape}, not a list of {' or '.join(dtypes)}"
            )
        if length is not None and len(values) != length:
            raise self.wrong(name, f"it has {len(values)} numbers, and there are {length} neighbors")
        if not values.flags.aligned:
            raise self.wrong(name, f"its numbers lie at no multiple of {values.itemsize} bytes")
        return values

    def _rows(self, name: str) -> Values | None:
        if not self._has(name):
            return None
        values = mapped(self.folder / f"{name}.npy")
        if values.ndim == 0 or len(values) != self.nodes:
            raise self.wrong(name, f"it has shape {values.shape}, and there are {self.nodes} nodes")
        return values

    def _read_facts(self) -> dict[str, Any] | None:
        path = self.folder / FACTS
        with naming("open", str(path)):
            try:
                facts = json.loads(path.read_text())
            except FileNotFoundError:
                return None
            except ValueError as problem:
                raise ValueError(f"it is damaged: {problem}: make the dataset anew") from None
            if not isinstance(facts, dict):
                raise ValueError("it is damaged: it holds no object: make the dataset anew")
            for name, here in (("nodes", self.nodes), ("edges", self.edges)):
                if facts.get(name, here) != here:
                    raise ValueError(
                        f"its {name} are {facts[name]}, and those here {here}: make the dataset anew"
                    )
        return facts
