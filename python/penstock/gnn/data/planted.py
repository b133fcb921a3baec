"""A graph with planted communities, drawn in blocks that do not depend on each other.

Each node has a rank: class after class, in each class from the most popular to the least. A permutation gives
it an id, so popular nodes and classes are scattered. A second one gives its number of in-edges, which are
exact shares of all edges; a third one its part of the splits. So labels, degrees and splits of any node are
computed, not stored, and the sources of its edges are drawn by a counter-based generator of its block.

Degrees and popularity follow a Zipf-Mandelbrot law, (rank + OFFSET) ** -exponent: a power law in which the
first node has no large part of all edges. The exponent of popularity follows from the share of the most
popular nodes, so that a small graph has the locality of the large one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from .permutations import Permutation

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

OFFSET = 16
DEGREE_EXPONENT = 0.6  # a tail of 1 + 1 / 0.6, as citations have; the least degree is 0.4 of the average
FEATURE_ROWS = 2048  # of a block; a change of it changes what a seed draws
EDGES_OF_BLOCK = 1 << 18  # about as many; nodes with most edges come on top
_NODES_OF_BLOCK = 1 << 14

_IDS, _DEGREES, _SPLITS, _CENTROIDS, _SOURCES, _NOISE, _RELATIONS = range(7)  # streams of a seed

# How 64 random bits of an edge are used, from the lowest: the class of its source, whether that is the node's
# own, and the source's rank in the class.
_CLASS_BITS, _OWN_BITS = 16, 12
MAX_CLASSES = 1 << 12


@dataclass(frozen=True)
class Facts:
    """What is drawn."""

    nodes: int
    edges: int
    classes: int
    width: int
    dtype: str
    homophily: float
    accuracy: float
    hot_share: float
    """Of the edges, those whose sources are the most popular 1 % of the nodes."""
    seed: int
    splits: tuple[int, int, int]
    """Nodes for training, validation and test."""
    relations: int = 1
    """An edge of relation r is drawn to a node whose class is r / relations of all classes further on."""


def random_of(seed: int, stream: int, block: int = 0) -> np.random.Generator:
    key = np.array([seed, stream << 48 | block], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


class Nodes:
    """Labels, degrees and splits, by node id."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.ids, self._degree_places, self._split_places = (
            Permutation(facts.nodes, random_of(facts.seed, stream)) for stream in (_IDS, _DEGREES, _SPLITS)
        )
        # The largest class has some 4 times the nodes of the smallest.
        weights = 1 / (1 + 3 * np.arange(facts.classes) / max(facts.classes - 1, 1))
        spare = facts.nodes - facts.classes
        ends = np.arange(1, facts.classes + 1) + np.floor(spare * np.cumsum(weights) / weights.sum() + 1e-6)
        self.class_starts = np.concatenate([[0], ends[:-1], [facts.nodes]]).astype(np.int64)

    def ranks(self, nodes: Ids) -> Ids:
        return self.ids.inverse(nodes)

    def classes_of(self, ranks: Ids) -> Ids:
        found: Ids = np.searchsorted(self.class_starts, ranks, side="right") - 1
        return found

    def labels(self, nodes: Ids) -> Ids:
        return self.classes_of(self.ranks(nodes))

    def degrees(self, nodes: Ids) -> Ids:
        """Numbers of in-edges; over all nodes their sum is `edges`."""
        places = self._degree_places.inverse(nodes)
        return self._edges_before(places + 1) - self._edges_before(places)

    @property
    def largest_degree(self) -> int:
        return int(self._edges_before(np.ones(1, np.int64))[0])

    def _edges_before(self, places: Ids) -> Ids:
        count = self.facts.nodes
        power = 1 - DEGREE_EXPONENT
        low, high = (OFFSET / count) ** power, (1 + OFFSET / count) ** power
        share = (((places + OFFSET) / count) ** power - low) / (high - low)
        edges: Ids = np.floor(share * self.facts.edges + 0.5).astype(np.int64)
        return edges

    def splits(self, nodes: Ids) -> tuple[Ids, Ids, Ids]:
        """Those of `nodes` for training, validation and test, in the order of `nodes`."""
        places = self._split_places.inverse(nodes)
        bounds = np.cumsum((0, *self.facts.splits))
        train, valid, test = (nodes[(places >= low) & (places < high)] for low, high in pairwise(bounds))
        return train, valid, test


class Edges:
    """Sources of the in-edges of nodes."""

    def __init__(self, nodes: Nodes) -> None:
        facts = nodes.facts
        self.nodes = nodes
        average = max(1, facts.edges // facts.nodes)
        self.block_nodes = max(1, min(_NODES_OF_BLOCK, EDGES_OF_BLOCK // average))
        self.blocks = -(-facts.nodes // self.block_nodes)
        starts = nodes.class_starts
        self._sizes = np.diff(starts)
        spread = (np.arange(1 << _CLASS_BITS) + 0.5) / (1 << _CLASS_BITS) * facts.nodes
        self._classes = nodes.classes_of(spread.astype(np.int64))
        # Sources of any class are of the own one by chance, too.
        chance = np.bincount(self._classes, minlength=facts.classes) / len(self._classes)
        own = np.clip((facts.homophily - chance) / np.maximum(1 - chance, 1e-9), 0, 1)
        self._own = np.floor(own * (1 << _OWN_BITS) + 0.5).astype(np.int64)
        offsets = OFFSET / self._sizes
        powers = powers_for(facts.hot_share, offsets)
        self._low = offsets**powers
        self._span = (1 + offsets) ** powers - self._low
        self._inverse_powers = 1 / powers

    def block(self, number: int) -> npt.NDArray[np.int64]:
        """Sources of the edges into the nodes of a block, node after node."""
        ids = self._ids(number)
        ranks = self.nodes.ranks(ids)
        degrees = self.nodes.degrees(ids)
        classes = self.nodes.classes_of(ranks)
        own_ranks, own_classes = np.repeat(ranks, degrees), np.repeat(classes, degrees)
        facts = self.nodes.facts
        if facts.relations > 1:
            ahead = np.arange(facts.relations) * facts.classes // facts.relations
            own_classes = (own_classes + ahead[self.relations(number)]) % facts.classes
        bits = random_of(self.nodes.facts.seed, _SOURCES, number).integers(
            0, 1 << 64, len(own_ranks), dtype=np.uint64
        )
        choice = (bits >> np.uint64(_CLASS_BITS) & np.uint64((1 << _OWN_BITS) - 1)).view(np.int64)
        any_class = self._classes[bits & np.uint64((1 << _CLASS_BITS) - 1)]
        chosen = np.where(choice < self._own[own_classes], own_classes, any_class)
        used = _CLASS_BITS + _OWN_BITS
        uniform = (bits >> np.uint64(used)) * 2.0 ** (used - 64)
        return self.nodes.ids.forward(self._popular(chosen, uniform, own_ranks))

    def relations(self, number: int) -> npt.NDArray[np.uint8]:
        """Of the edges of a block."""
        count = int(self.nodes.degrees(self._ids(number)).sum())
        draws = random_of(self.nodes.facts.seed, _RELATIONS, number)
        return draws.integers(0, self.nodes.facts.relations, count, dtype=np.uint8)

    def _ids(self, number: int) -> Ids:
        first = number * self.block_nodes
        return np.arange(first, min(first + self.block_nodes, self.nodes.facts.nodes))

    def _popular(self, classes: Ids, uniform: Floats, own_ranks: Ids) -> Ids:
        """A rank of each class; no node's own, where its class has others."""
        sizes, starts = self._sizes[classes], self.nodes.class_starts[classes]
        shares = (self._low[classes] + uniform * self._span[classes]) ** self._inverse_powers[classes]
        places = np.clip((shares * sizes).astype(np.int64) - OFFSET, 0, sizes - 1)
        places += starts
        own = np.flatnonzero(places == own_ranks)
        places[own] = starts[own] + (places[own] - starts[own] + 1) % sizes[own]
        return places


class Features:
    """Centroid of the class plus noise."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.blocks = -(-facts.nodes // FEATURE_ROWS)
        directions = random_of(facts.seed, _CENTROIDS).standard_normal((facts.classes, facts.width))
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
        self.centroids = (directions * signal_for(facts.accuracy, facts.classes)).astype(np.float32)

    def block(self, number: int, labels: Ids) -> npt.NDArray[np.float32]:
        """Rows of the nodes of a block with these labels.

        Noise has a standard deviation of 1, and is uniform: that takes an eighth of the time of a normal
        one, and what a model computes are sums over many numbers, which are normal.
        """
        random = random_of(self.facts.seed, _NOISE, number)
        count = len(labels) * self.facts.width
        words = random.integers(0, 1 << 64, -(-count // 4), dtype=np.uint64)
        rows = words.view(np.int16)[:count].astype(np.float32).reshape(len(labels), self.facts.width)
        rows *= np.float32(3**0.5 / (1 << 15))
        rows += self.centroids[labels]
        return rows


def powers_for(hot_share: float, offsets: Floats) -> Floats:
    """1 - exponent for each class, with which its first 1 % of ranks have `hot_share` of the probability.

    offsets: OFFSET over the nodes of each class. Exponents are 0 to 2.5, which small classes reach.
    """
    low, high = np.full(len(offsets), -1.5), np.full(len(offsets), 1.0)
    powers: Floats = high
    for _ in range(50):
        powers = (low + high) / 2
        powers[np.abs(powers) < 1e-6] = 1e-6  # at 0 the law is a logarithm, which this is close to
        first = offsets**powers
        reached = ((0.01 + offsets) ** powers - first) / ((1 + offsets) ** powers - first)
        low, high = np.where(reached > hot_share, powers, low), np.where(reached > hot_share, high, powers)
    return powers


def signal_for(accuracy: float, classes: int) -> float:
    """Length of centroids with which the nearest one is a node's own with this probability.

    Noise of standard deviation 1 along each of `classes` orthogonal directions; in a space of few dimensions
    directions are not orthogonal, and the accuracy is lower.
    """
    if classes == 1:
        return 1.0
    z = np.linspace(-8, 8, 2001)
    density = np.exp(-z * z / 2)
    density /= density.sum()
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        reached = float(np.sum(density * ndtr(z + middle) ** (classes - 1)))
        low, high = (middle, high) if reached < accuracy else (low, middle)
    return low
