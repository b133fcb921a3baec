"""The packages of this Debian machine as a small real dataset: which section is a package of?"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from penstock.callbacks import Progress
from penstock.checks import checked_count
from penstock.drafts import draft_folder
from penstock.graph import debian

from .converting import Parts, Target, checked_options, write_parts
from .dataset import Dataset, open_dataset
from .edges import MemoryEdges
from .npy import read_npy, write_npy

WIDTH = 128
_LEAST_PACKAGES = 50  # of a section that is a class
_WORD = re.compile(r"[a-z]{3,}")
_SHARES = (0.6, 0.8)  # where training ends, and validation


def from_debian(
    folder: str | os.PathLike[str],
    *,
    width: SupportsIndex = WIDTH,
    undirected: bool = True,
    seed: SupportsIndex = 1,
    lists: Iterable[Path] | None = None,
    memory: SupportsIndex | str = "1GiB",
    progress: Progress | None = None,
) -> Dataset:
    """Write the dependency graph of this machine's packages as a dataset folder.

    A node is a package, an edge leads from a package to one that it depends on. Features are the words of its
    short description, hashed; its label is the section that it is in, of those with 50 packages or more.

    Args:
        folder: A new one; it appears when all is written.
        width: Of the features.
        undirected: Add the reverse of each edge.
        seed: Of the splits: 60 % for training, 20 % each for validation and test.
        lists: Package lists; those of this machine unless they are given.
        memory: Bytes for edges that are sorted at once.
        progress: Called with what is done, how much of it, and of how much.

    Returns:
        The dataset, opened.

    Raises:
        ValueError: For a bad argument, lists without packages, or a folder that is not empty.
        penstock.Error: This machine has no package lists, or the folder cannot be written.
    """
    options = checked_options(undirected, True, memory, progress)
    columns = checked_count("width", width, 1)
    draw = np.random.default_rng(checked_count("seed", seed, 0))
    paths = list(debian.package_lists() if lists is None else lists)
    graph, names = debian.read_debian(paths)
    about = _about(paths)
    labels = _labels([about.get(name, ("", ""))[0] for name in names])
    order = draw.permutation(np.flatnonzero(labels >= 0))
    first, second = (int(share * len(order)) for share in _SHARES)
    splits = {
        name: np.sort(part)
        for name, part in zip(("train", "valid", "test"), np.split(order, (first, second)), strict=True)
    }
    with draft_folder("convert to", folder) as draft:
        target = Target(draft, Path(folder).resolve(), options)
        for name, values in (
            ("x.tmp", _features([about.get(each, ("", ""))[1] for each in names], columns)),
            ("y.tmp", labels),
        ):
            write_npy(draft / name, values)
        edges = MemoryEdges("the package lists", graph.from_.astype(np.int64), graph.to.astype(np.int64))
        features, stored = read_npy(draft / "x.tmp"), read_npy(draft / "y.tmp")
        write_parts(target, Parts(len(names), edges, features, stored, splits, "debian"), "debian")
    return open_dataset(folder)


def _about(paths: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """Section and short description of each package."""
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        for stanza in _stanzas(debian.read_lines(path)):
            section = stanza.get("Section", "").rpartition("/")[2]
            found.setdefault(stanza.get("Package", ""), (section, stanza.get("Description", "")))
    return found


def _stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    stanza: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            if stanza:
                yield stanza
            stanza = {}
        elif line[0] not in " \t":
            name, _, value = line.partition(":")
            stanza[name] = value.strip()
    if stanza:
        yield stanza


def _labels(sections: list[str]) -> npt.NDArray[np.int64]:
    counted = Counter(sections)
    classes = sorted(name for name, count in counted.items() if name and count >= _LEAST_PACKAGES)
    if not classes:  # few packages: all sections
        classes = sorted(name for name in counted if name)
    number = {name: k for k, name in enumerate(classes)}
    return np.array([number.get(section, -1) for section in sections], np.int64)


def _features(texts: list[str], width: int) -> npt.NDArray[np.float32]:
    """Counts of hashed words, of length 1."""
    made = np.zeros((len(texts), width), np.float32)
    for row, text in enumerate(texts):
        for word in _WORD.findall(text.lower()):
            made[row, zlib.crc32(word.encode()) % width] += 1
    made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1)
    return made
