"""Texts: codes of a dictionary, whose words are looked at on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.columns.expressions import Call, Expr
from penstock.columns.graph import Typed
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import BOOLEAN

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph


def text_comparison(graph: Graph, name: str, args: tuple[Expr, ...], a: Typed, b: Typed) -> Typed:
    if a.type.kind != b.type.kind:
        raise mismatch(name, args, a, b)
    if a.node < 0 and b.node < 0:
        raise TypeError(f"{shown(Call(name, args))}: it compares two literals: name a column")
    if a.node >= 0 and b.node >= 0:
        if name not in ("equal", "not_equal") or a.type.words != b.type.words:
            raise TypeError(
                f"{shown(Call(name, args))}: two columns of text are compared for equality alone, where "
                "they share a dictionary"
            )
        return Typed(graph.add(name, a.node, b.node), BOOLEAN)
    column, literal = (a, b) if a.node >= 0 else (b, a)
    word = (literal.type.words or ("",))[0]
    tests: dict[str, Callable[[str], bool]] = {
        "equal": lambda text: text == word,
        "not_equal": lambda text: text != word,
        "less": (lambda text: text < word) if a.node >= 0 else (lambda text: word < text),
        "less_equal": (lambda text: text <= word) if a.node >= 0 else (lambda text: word <= text),
    }
    return look_up(graph, column, tests[name])


def look_up(graph: Graph, text: Typed, test: Callable[[str], bool]) -> Typed:
    words = text.type.words or ()
    answers = np.fromiter((test(word) for word in words), np.uint64, len(words))
    between = within(graph, text.node, np.flatnonzero(answers))
    if between is None and answers.any():
        without = within(graph, text.node, np.flatnonzero(answers == 0))
        between = None if without is None else graph.add("logic_not", without)
    if between is not None:
        return Typed(between, BOOLEAN)
    number = graph.table(answers, np.ones(len(words), np.uint8))
    return Typed(graph.add("lookup", text.node, number=number, nullable=True), BOOLEAN)


def within(graph: Graph, node: int, codes: Any) -> int | None:
    """Whether a value is one of those, in order, if they have no gap: ranges need no instructions."""
    low, high = (int(codes[0]), int(codes[-1])) if len(codes) else (-1, -1)
    if high - low + 1 > max(len(codes), 1):
        return None
    if low == high:
        return graph.add("equal", node, graph.integer(low))
    least = graph.add("less_equal", graph.integer(low), node)
    return graph.add("logic_and", least, graph.add("less_equal", node, graph.integer(high)))


def text_test(graph: Graph, arg: Expr, test: Callable[[str], bool]) -> Typed:
    value = graph.lower(arg)
    if value.type.kind != "string" or value.node < 0:
        raise TypeError(f"{shown(arg)} is {value.type}: a column of text is wanted")
    return look_up(graph, value, test)
