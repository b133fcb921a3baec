"""Sizes of the datasets that papers train graph neural networks on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Facts of a dataset that a drawn one copies."""

    nodes: int
    edges: int
    width: int
    """Numbers of a node's features."""
    dtype: str
    classes: int
    splits: tuple[float, float, float]
    """Shares of the nodes for training, validation and test."""
    hot_share: float = 0.32
    """Of the edges, those whose sources are the most popular 1 % of the nodes: 32 % in papers100M, 46 % in
    MAG240M (Min's dissertation, section 4.4.2)."""

    @property
    def average_degree(self) -> float:
        return self.edges / self.nodes


def _parts(nodes: int, *counts: int) -> tuple[float, float, float]:
    train, valid, test = (count / nodes for count in counts)
    return train, valid, test


_IGB = (0.6, 0.2, 0.2)
# wikipedia and amazon have no labels in the dissertation's table 3.4: classes and splits are our choice.
_CHOSEN_CLASSES = 50
_CHOSEN_SPLITS = (0.1, 0.02, 0.02)

SHAPES: dict[str, Shape] = {
    "papers100M": Shape(
        111_059_956, 1_615_685_872, 128, "float32", 172, _parts(111_059_956, 1_207_179, 125_265, 214_338)
    ),
    "MAG240M": Shape(
        121_751_666,
        1_297_748_926,
        768,
        "float16",
        153,
        _parts(121_751_666, 1_112_392, 138_949, 146_818),
        0.46,
    ),
    "wikipedia": Shape(13_600_000, 437_200_000, 315, "float32", _CHOSEN_CLASSES, _CHOSEN_SPLITS),
    "amazon": Shape(14_700_000, 64_000_000, 578, "float32", _CHOSEN_CLASSES, _CHOSEN_SPLITS),
    "igb-small": Shape(1_000_000, 12_000_000, 1024, "float32", 19, _IGB),
    "igb-medium": Shape(10_000_000, 120_000_000, 1024, "float32", 19, _IGB),
    "igb-large": Shape(100_000_000, 1_200_000_000, 1024, "float32", 19, _IGB),
    "products": Shape(
        2_449_029, 123_718_280, 100, "float32", 47, _parts(2_449_029, 196_615, 39_323, 2_213_091)
    ),
}
"""By name. Edges of products count both directions."""


def shape_named(name: str) -> Shape:
    """Raises ValueError for a name that is not in SHAPES; upper and lower case are the same."""
    for known, shape in SHAPES.items():
        if known.lower() == str(name).lower():
            return shape
    raise ValueError(f"like {name!r}: there is no such shape: choose one of {', '.join(SHAPES)}")
