"""What help() and editors show of the algorithms."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import pytest

pytest.importorskip("numpy")
from penstock.graph import algorithms, options, search
from penstock.options import defaults_of

ALGORITHMS = (search.bfs, algorithms.sssp, algorithms.cc, algorithms.pagerank)


@pytest.mark.parametrize("function", ALGORITHMS, ids=lambda each: each.__name__)
def test_signatures_show_each_option_with_its_default(function: Any) -> None:
    shown = inspect.signature(function).parameters
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())
    for name, default in defaults_of(options.GraphOptions).items():
        assert shown[name].default == default, name
    assert set(defaults_of(options.GraphOptions)) == set(options.GraphOptions.__annotations__)
    shown_by_help = pydoc.render_doc(function, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert "queue_depth: int = 256" in shown_by_help


@pytest.mark.parametrize("function", ALGORITHMS, ids=lambda each: each.__name__)
def test_options_that_do_not_exist_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="cach"):
        function("kron:4", cach="1MiB")
