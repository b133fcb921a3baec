"""What the tests of graph inputs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.graph import GraphFolder, resolve

Edge = tuple[Any, ...]


def edges_of(graph: GraphFolder) -> list[Edge]:
    """Source and target, by name where there are names, and the weight where there is one; sorted."""
    from_ = np.repeat(np.arange(graph.vertices), np.diff(graph.offsets().astype(np.int64)).tolist()).tolist()
    to = graph.edge_array().tolist()
    weights = graph.weight_array()
    names = graph.labels or graph.names or range(graph.vertices)
    values = [()] * graph.edges if weights is None else [(weight,) for weight in weights.tolist()]
    return sorted(((names[a], names[b], *w) for a, b, w in zip(from_, to, values, strict=True)), key=repr)


def edges_in(content: str | bytes, name: str = "a.csv", **options: Any) -> list[Edge]:
    """Those of a file with that content, in the current folder."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return edges_of(resolve(name, **options))


def refusal(spec: Any, *parts: str, kind: type[Exception] = ValueError, **options: Any) -> str:
    """The sentence with which `spec` is refused: one line with these parts, and nothing of the cache."""
    with pytest.raises(kind) as caught:
        resolve(spec, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert "/cache/" not in sentence
    for part in parts:
        assert part in sentence
    return sentence
