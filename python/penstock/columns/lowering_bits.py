"""Bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.columns.expressions import Expr
from penstock.columns.graph import Typed
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import INTEGER

if TYPE_CHECKING:
    from penstock.columns.lowering import Graph

BITS = ("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")


def bits(graph: Graph, name: str, args: tuple[Expr, ...]) -> Typed:
    """Of two integers; the sign is one of 64."""
    a, b = graph.pair(name, args)
    if not a.type.kind == b.type.kind == "integer":
        raise mismatch(name, args, a, b)
    node = graph.add(name, a.node, b.node)
    if name == "shift_right" and a.type.width < 64:  # of as many bits as the column's type has
        is_within = graph.add("less", b.node, graph.integer(a.type.width))
        nullable, missing = graph.nodes[node].nullable, graph.add("is_null", node, nullable=False)
        known = graph.add("select", is_within, node, graph.integer(0), nullable=nullable)
        node = graph.add("select", missing, node, known, nullable=nullable)
    return Typed(node, INTEGER)


def bit_not(graph: Graph, arg: Expr) -> Typed:
    """All bits turned round, as many as the type has."""
    value = graph.lower(arg)
    if value.type.kind != "integer" or (not value.type.signed and value.type.width == 64):
        raise TypeError(f"~{shown(arg)}: it is {value.type}: cast it to a signed integer")
    mask = -1 if value.type.signed else (1 << value.type.width) - 1
    return Typed(graph.add("bit_xor", value.node, graph.integer(mask)), INTEGER)
