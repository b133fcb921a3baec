"""TRY_CAST: null where a cast would fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Expr
from penstock.columns.graph import Typed
from penstock.columns.lowering_numbers import PARSERS, cast_to_decimal, rounded, rounded_to_even
from penstock.columns.lowering_texts import text_of_words
from penstock.columns.parts import TextFunction
from penstock.columns.types import INTEGER, ColumnType

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph


@dataclass(frozen=True)
class Target:
    """What is cast to: a cast of the lowering, and values that fit, of integers and units of decimals."""

    cast: str
    scale: int = 0
    most: int = 1 << 63
    """Integers are from minus this on and below it; units of decimals are above minus this, too."""

    @property
    def least(self) -> int:
        return -self.most if self.cast == "cast_to_integer" else 1 - self.most


def try_cast(graph: Graph, arg: Expr, target: Target) -> Typed:
    value = graph.lower(arg)
    if value.type.kind == "string":
        return text_of_words(graph, [value], _tried(target), [arg])
    if target.cast == "cast_to_integer" and (value.type.is_numeric or value.type.kind == "boolean"):
        return _to_integer(graph, value, arg, target)
    if target.cast == "cast_to_decimal" and value.type.is_numeric:
        return _to_decimal(graph, value, arg, target)
    return graph.cast(target.cast, arg, target.scale)


def _tried(target: Target) -> TextFunction:
    parser = PARSERS[target.cast](target.scale)

    def apply(text: str) -> Any:
        try:
            made = parser.apply(text)
        except ValueError:
            return None
        return made if not isinstance(made, int) or target.least <= made < target.most else None

    return TextFunction("try_cast", (target,), parser.type, apply)


def _to_integer(graph: Graph, value: Typed, arg: Expr, target: Target) -> Typed:
    if value.type.kind == "boolean":
        return Typed(value.node, INTEGER)
    if value.type.is_number:
        whole = rounded_to_even(graph, value.node)
        fits = _between(graph, whole, graph.float(float(target.least)), graph.float(float(target.most)), True)
        return Typed(graph.add("convert_to_integer", _where(graph, fits, whole, True)), INTEGER)
    return Typed(_within(graph, rounded(graph, value, 0, arg).node, target), INTEGER)


def _to_decimal(graph: Graph, value: Typed, arg: Expr, target: Target) -> Typed:
    kind = ColumnType("decimal", scale=target.scale)
    if value.type.is_number:
        edge = float(target.most) / 10**target.scale
        fits = _between(graph, value.node, graph.float(-edge), graph.float(edge), True)
        value = Typed(_where(graph, fits, value.node, True), value.type)
    elif value.type.scale < target.scale:
        edge = target.most // 10 ** (target.scale - value.type.scale)
        return Typed(
            graph.scaled(Typed(_within(graph, value.node, target, edge), value.type), kind.scale), kind
        )
    made = cast_to_decimal(graph, value, arg, target.scale)
    return Typed(_within(graph, made.node, target), kind)


def _within(graph: Graph, node: int, target: Target, most: int | None = None) -> int:
    """An integer, null where it does not fit."""
    most = target.most if most is None else most
    least = graph.integer(-most if target.cast == "cast_to_integer" else 1 - most)
    return _where(graph, _between(graph, node, least, graph.integer(most - 1), False), node, False)


def _between(graph: Graph, node: int, least: int, most: int, is_below: bool) -> int:
    above = graph.add("less_equal", least, node)
    return graph.add("logic_and", above, graph.add("less" if is_below else "less_equal", node, most))


def _where(graph: Graph, fits: int, node: int, is_number: bool) -> int:
    nothing = graph.add("null", is_number=is_number, nullable=True)
    return graph.add("select", fits, node, nothing, is_number=is_number, nullable=True)
