"""Expressions as they were written, about: for sentences."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.columns.expressions import Aggregate, Alias, Call, Column, Expr, Value, name_of
from penstock.columns.graph import Typed

SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "modulo": "%",
    "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!=", "logic_and": "&", "logic_or": "|",
    "bit_and": "&", "bit_or": "|", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip


def shown(expression: Expr) -> str:
    """An expression as it was written, about."""
    match expression:
        case Column(name):
            return name
        case Value(value):
            return repr(value)
        case Alias(of, _):
            return shown(of)
        case Aggregate(kind, of):
            return f"{kind}({'' if of is None else shown(of)})"
        case Call(name, (a, b)) if name in SYMBOLS:
            return f"({shown(a)} {SYMBOLS[name]} {shown(b)})"
        case Call(name, args):
            return f"{name}({', '.join(shown(arg) for arg in args)})"
    return name_of(expression)


def mismatch(name: str, args: Sequence[Expr], a: Typed, b: Typed) -> TypeError:
    what = SYMBOLS.get(name, name)
    return TypeError(
        f"{shown(args[0])} {what} {shown(args[1])}: {a.type} and {b.type} do not go together: give both "
        "the same type"
    )
