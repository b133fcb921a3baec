"""Texts: codes of a dictionary. What is made of a text is made of each of its words, once, on the host."""

from __future__ import annotations

import itertools
import math
import operator
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.columns.expressions import Expr
from penstock.columns.graph import Typed
from penstock.columns.parts import TextFunction
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import BOOLEAN, ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph

COMBINATIONS = 1 << 20
"""Of the words of several texts that something is made of together."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What a function gives for each combination of words."""

    of: tuple[tuple[str, ...], ...]
    values: Any
    """uint64: truth values, numbers, or codes of words."""
    valid: Any
    type: ColumnType


MOST_KEPT = 16
"""Of what is made of a dictionary."""

_kept: dict[int, dict[TextFunction, Made]] = {}
"""By the type that has the dictionary, as long as there is such an object."""


def _kept_of(kind: ColumnType) -> dict[TextFunction, Made]:
    if id(kind) not in _kept:
        _kept[id(kind)] = {}
        weakref.finalize(kind, _kept.pop, id(kind), None)
    return _kept[id(kind)]


def literal_text(graph: Graph, text: str) -> Typed:
    return Typed(graph.integer(0), ColumnType("string", words=(text,)))


def _word_of(graph: Graph, literal: Typed) -> str:
    return (literal.type.words or ())[graph.nodes[literal.node].bits]


def is_literal(graph: Graph, value: Typed) -> bool:
    return graph.nodes[value.node].op == "constant"


def text_comparison(graph: Graph, name: str, args: tuple[Expr, ...], a: Typed, b: Typed) -> Typed:
    if a.type.kind != b.type.kind:
        raise mismatch(name, args, a, b)
    compare = COMPARISONS[name]
    if is_literal(graph, b):
        word = _word_of(graph, b)
        return test(graph, a, name, lambda text: compare(text, word), word)
    if is_literal(graph, a):
        first = _word_of(graph, a)
        return test(graph, b, f"{name} of", lambda text: compare(first, text), first)
    if a.type.words is not b.type.words or name.startswith("less"):
        a, b = in_order(graph, *merged(graph, a, b))
    return Typed(graph.add(name, a.node, b.node), BOOLEAN)


def test(graph: Graph, text: Typed, name: str, is_so: Callable[[str], bool], *args: Any) -> Typed:
    """Whether something is so of a text; name and arguments say what."""
    return text_of_words(graph, [text], TextFunction(name, args, BOOLEAN, is_so), [])


def text_function(graph: Graph, args: Sequence[Expr], function: TextFunction) -> Typed:
    """What a function makes of texts, null where one is."""
    texts = [graph.lower(arg) for arg in args]
    for arg, text in zip(args, texts, strict=True):
        if graph.nodes[text.node].op == "null":
            return graph.literal(
                None, replace(function.type, words=()) if function.is_text else function.type
            )
        if text.type.kind != "string":
            raise TypeError(f"{shown(arg)} is {text.type}: a column of text is wanted")
    return text_of_words(graph, texts, function, args)


def text_of_words(
    graph: Graph, texts: Sequence[Typed], function: TextFunction, args: Sequence[Expr]
) -> Typed:
    made = _of_words(function, [text.type for text in texts], args)
    if made.type is texts[0].type:
        return texts[0]
    code = texts[0].node
    for text in texts[1:]:
        code = graph.add("multiply", code, graph.integer(len(text.type.words or ())))
        code = graph.add("add", code, text.node)
    known = graph.nodes[code]
    if known.op == "constant" and made.valid[known.bits]:
        bits, is_number = int(made.values[known.bits]), made.type.is_number
        return Typed(graph.add("constant", bits=bits, is_number=is_number, nullable=False), made.type)
    if made.type.kind == "boolean" and made.valid.all():
        return Typed(_marked(graph, code, made.values), made.type)
    return Typed(_looked_up(graph, code, made.values, made.valid, made.type.is_number), made.type)


def _of_words(function: TextFunction, kinds: Sequence[ColumnType], args: Sequence[Expr]) -> Made:
    kept, of = _kept_of(kinds[0]), tuple(kind.words or () for kind in kinds)
    known = kept.get(function)
    if (
        known is not None
        and len(known.of) == len(of)
        and all(a is b for a, b in zip(known.of, of, strict=True))
    ):
        return known
    if len(of) > 1 and math.prod(map(len, of)) > COMBINATIONS:
        raise ValueError(
            f"{function.name}({', '.join(map(shown, args))}): the texts have {math.prod(map(len, of))} "
            f"combinations, and {COMBINATIONS} are made at most: use one column, and literals"
        )
    if function.is_of_all:
        found = function.apply(list(of[0]))
    else:
        found = [None if None in words else function.apply(*words) for words in itertools.product(*of)]
    valid = np.array([each is not None for each in found], np.uint8)
    kind = function.type
    if function.is_text:
        is_same = len(of) == 1 and found == list(of[0])
        words = of[0] if is_same else tuple(sorted({each for each in found if each is not None}))
        kind = kinds[0] if is_same else replace(kind, words=words)
        code_of = {word: code for code, word in enumerate(words)}
        found = [None if each is None else code_of[each] for each in found]
    dtype = np.float64 if kind.is_number else np.int64
    values = np.array([0 if each is None else each for each in found], dtype).view(np.uint64)
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[function] = Made(of, values, valid, kind)
    return kept[function]


def _marked(graph: Graph, code: int, answers: Any) -> int:
    """Whether a code's answer is yes."""
    found = within(graph, code, np.flatnonzero(answers))
    if found is None and answers.any():
        without = within(graph, code, np.flatnonzero(answers == 0))
        found = None if without is None else graph.add("logic_not", without)
    return _looked_up(graph, code, answers, np.ones(len(answers), np.uint8)) if found is None else found


def _looked_up(graph: Graph, code: int, values: Any, valid: Any, is_number: bool = False) -> int:
    number = graph.table(values, valid)
    return graph.add("lookup", code, number=number, is_number=is_number, nullable=True)


def within(graph: Graph, node: int, codes: Any) -> int | None:
    """Whether a value is one of those, in order, if they have no gap: ranges need no instructions."""
    low, high = (int(codes[0]), int(codes[-1])) if len(codes) else (-1, -1)
    if high - low + 1 > max(len(codes), 1):
        return None
    if low == high:
        return graph.add("equal", node, graph.integer(low))
    least = graph.add("less_equal", graph.integer(low), node)
    return graph.add("logic_and", least, graph.add("less_equal", node, graph.integer(high)))


def merged(graph: Graph, a: Typed, b: Typed) -> tuple[Typed, Typed]:
    """Two texts as codes of one dictionary, which begins with the first one's."""
    first, second = a.type.words or (), b.type.words or ()
    if first is second:
        return a, b
    code_of = {word: code for code, word in enumerate(dict.fromkeys((*first, *second)))}
    kind = replace(a.type, words=tuple(code_of))
    return Typed(a.node, kind), Typed(_recoded(graph, b.node, [code_of[word] for word in second]), kind)


def in_order(graph: Graph, *texts: Typed) -> list[Typed]:
    """Texts of one dictionary as codes that order as its words do."""
    words = texts[0].type.words or ()
    ordered = tuple(sorted(words, key=lambda word: (word is None, word or "")))
    if ordered == words:
        return list(texts)
    rank = {word: code for code, word in enumerate(ordered)}
    codes = [rank[word] for word in words]
    kind = replace(texts[0].type, words=ordered)
    return [Typed(_recoded(graph, text.node, codes), kind) for text in texts]


def _recoded(graph: Graph, node: int, codes: Sequence[int]) -> int:
    known = graph.nodes[node]
    if known.op == "constant":
        return graph.integer(codes[known.bits])
    if list(codes) == list(range(len(codes))):
        return node
    return _looked_up(graph, node, np.array(codes, np.uint64), np.ones(len(codes), np.uint8))
