"""From expressions to values with types."""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.columns.casting import try_cast
from penstock.columns.expressions import Aggregate, Alias, Call, Column, Expr, Stored, Value
from penstock.columns.graph import INT64, Typed, Values
from penstock.columns.lowering_bits import BITS, bit_not, bits
from penstock.columns.lowering_numbers import (
    cast_to_boolean,
    cast_to_date,
    cast_to_decimal,
    cast_to_float,
    cast_to_integer,
    cast_to_time,
    in_range,
    quotient,
    remainder,
    rounded,
)
from penstock.columns.lowering_texts import (
    literal_text,
    merged,
    test,
    text_comparison,
    text_function,
    within,
)
from penstock.columns.lowering_times import (
    DATE_PARTS,
    as_date,
    as_time,
    date_arithmetic,
    date_part,
    in_unit,
    later,
    truncated,
)
from penstock.columns.parts import TextFunction
from penstock.columns.printing import printed
from penstock.columns.shown import mismatch, shown
from penstock.columns.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    MOST_DIGITS,
    ColumnType,
    literal_type,
    ticks_of,
)

LOOKUP_ROWS = 1 << 20
CASTS = {
    "cast_to_integer": cast_to_integer,
    "cast_to_float": cast_to_float,
    "cast_to_boolean": cast_to_boolean,
    "cast_to_time": cast_to_time,
    "date": cast_to_date,
}


class Graph(Values):
    """Values of expressions."""

    def lower(self, expression: Expr) -> Typed:
        """The value of an expression of one row.

        Raises:
            KeyError: There is no such column.
            TypeError: Operands that do not go together, with the expression.
        """
        match expression:
            case Column(name):
                for join in self.joins:
                    if name in join.names:
                        return join.lower(self, join.names[name])
                number, kind, nullable = self.schema.column(name)
                return Typed(
                    self.add("load", number=number, is_number=kind.is_number, nullable=nullable), kind
                )
            case Alias(of, _):
                return self.lower(of)
            case Value(value):
                return self.literal(value, None)
            case Stored(None, kind):
                return self.literal(None, kind)
            case Stored(value, kind):
                assert value is not None
                return Typed(self.float(value) if kind.is_number else self.integer(int(value)), kind)
            case Call(name, args, extra):
                return self.call(name, args, extra)
            case Aggregate():
                raise TypeError(
                    f"{shown(expression)}: an aggregate of many rows where a value of one is wanted: use it "
                    "in agg()"
                )
        raise TypeError(f"{expression!r} is no expression: use col() and lit()")

    def literal(self, value: Any, wanted: ColumnType | None) -> Typed:
        """A value as another operand has its values."""
        if value is None:
            kind = wanted or INTEGER
            return Typed(self.add("null", is_number=kind.is_number, nullable=True), kind)
        kind = literal_type(value)
        match kind.kind:
            case "float":
                return Typed(self.float(float(value)), FLOAT)
            case "boolean":
                return Typed(self.integer(int(value)), BOOLEAN)
            case "decimal" if wanted is not None and wanted.is_number and wanted.width == 32:
                return Typed(self.float(float(np.float32(value))), FLOAT)
            case "decimal":
                return Typed(self.integer(int(value.scaleb(kind.scale))), kind)
            case "date":
                return Typed(self.integer((value - datetime.date(1970, 1, 1)).days), DATE)
            case "timestamp":
                beside = wanted if wanted is not None and wanted.kind == "timestamp" else kind
                if beside.zone is not None and getattr(value, "tzinfo", None) is None:
                    raise TypeError(
                        f"{value}: it stands beside times of {beside.zone}: give it a zone (tzinfo; in SQL "
                        f"'{value}+00')"
                    )
                unit = beside.unit
                ticks = ticks_of(value, unit)
                if ticks is None or ticks not in INT64:
                    unit, ticks = "us", ticks_of(value, "us")
                assert ticks is not None  # Python's times have no parts of a microsecond
                return Typed(self.integer(ticks), replace(kind, unit=unit))
            case "string":
                return literal_text(self, value)
            case _:
                return Typed(self.integer(int(value)), INTEGER)

    def pair(self, name: str, args: tuple[Expr, ...]) -> tuple[Typed, Typed]:
        """Both operands; a literal follows the other."""
        first, second = args
        if isinstance(first, Value) and (not isinstance(second, Value) or first.value is None):
            b = self.lower(second)
            return self.literal(as_date(first.value, b), b.type), b
        a = self.lower(first)
        if isinstance(second, Value):
            return a, self.literal(as_date(second.value, a), a.type)
        return a, self.lower(second)

    def call(self, name: str, args: tuple[Expr, ...], extra: Any) -> Typed:
        if isinstance(extra, TextFunction):
            return text_function(self, args, extra)
        if name in CASTS:
            return self.cast(name, args[0])
        match name:
            case "add" | "subtract" | "multiply" | "divide" | "floor_divide" | "modulo":
                return self.arithmetic(name, args, extra)
            case _ if name in BITS:
                return bits(self, name, args)
            case "bit_not":
                return bit_not(self, args[0])
            case "quotient":
                return quotient(self, *args)
            case "remainder":
                return remainder(self, *args)
            case "equal" | "not_equal" | "less" | "less_equal":
                return self.comparison(name, args)
            case "logic_and" | "logic_or":
                a, b = (self.truth(arg) for arg in args)
                return Typed(self.add(name, a, b), BOOLEAN)
            case "logic_not":
                return Typed(self.add(name, self.truth(args[0])), BOOLEAN)
            case "is_null":
                return Typed(self.add(name, self.lower(args[0]).node, nullable=False), BOOLEAN)
            case "is_in":
                return self.membership(args[0], extra)
            case "round":
                return rounded(self, self.lower(args[0]), extra, args[0])
            case "in_range":
                return in_range(self, self.lower(args[0]), args[0], extra)
            case "cast_to_decimal":
                return self.cast(name, args[0], extra)
            case "try_cast":
                return try_cast(self, args[0], extra)
            case "printed":
                return printed(self, args[0], extra)
            case "truncate":
                return truncated(self, self.lower(args[0]), args[0], extra)
            case "offset":
                return later(self, self.lower(args[0]), args[0], *extra)
            case "select" | "fill_null":
                return self.choice(name, args)
        if name in DATE_PARTS:
            return date_part(self, name, args[0])
        return self.unary(name, args[0])

    def cast(self, name: str, arg: Expr, scale: int = 0) -> Typed:
        value = self.lower(arg)
        if name == "cast_to_decimal":
            return cast_to_decimal(self, value, arg, scale)
        return CASTS[name](self, value, arg)

    def truth(self, expression: Expr) -> int:
        value = self.lower(expression)
        if value.type.kind != "boolean" and self.nodes[value.node].op != "null":
            raise TypeError(
                f"{shown(expression)} is {value.type}: a condition is wanted: compare it with something"
            )
        return value.node

    def unary(self, name: str, arg: Expr) -> Typed:
        value = self.lower(arg)
        if value.type.kind == "boolean" and name.startswith("convert"):
            value = Typed(value.node, INTEGER)
        if not value.type.is_numeric:
            what = {"convert_to_integer": "cast(int)", "convert_to_float": "cast(float)"}.get(name, name)
            raise TypeError(f"{shown(arg)} is {value.type}: a number is wanted for {what}")
        if name in ("floor", "ceil", "square_root", "is_nan"):
            if name in ("floor", "ceil") and value.type.kind == "decimal":
                return self.whole_decimal(name, value)
            is_nan = name == "is_nan"
            node = self.add(name, self.as_float(value), is_number=not is_nan)
            return Typed(node, BOOLEAN if is_nan else FLOAT)
        if name == "convert_to_float":
            return Typed(self.as_float(value), FLOAT)
        if name == "convert_to_integer":
            if value.type.kind == "integer":
                return Typed(value.node, INTEGER)
            if value.type.kind == "decimal":
                below = self.whole_decimal("floor", value).node
                above = self.whole_decimal("ceil", value).node
                negative = self.add("less", value.node, self.integer(0))
                return Typed(self.add("select", negative, above, below), INTEGER)
            return Typed(self.add(name, self.as_float(value)), INTEGER)
        return Typed(self.add(name, value.node, is_number=value.type.is_number), widest(value.type))

    def whole_decimal(self, name: str, value: Typed) -> Typed:
        """The next whole number below a decimal, or above it."""
        unit = self.integer(10**value.type.scale)
        nullable = self.nodes[value.node].nullable
        node = value.node if name == "floor" else self.add("negate", value.node)
        node = self.add("floor_divide", node, unit, nullable=nullable)
        return Typed(node if name == "floor" else self.add("negate", node), ColumnType("decimal", scale=0))

    def as_float(self, value: Typed) -> int:
        if value.type.is_number:
            return value.node
        node = self.add("convert_to_float", value.node, is_number=True)
        if value.type.kind != "decimal" or value.type.scale == 0:
            return node
        return self.add("divide", node, self.float(float(10**value.type.scale)), is_number=True)

    def scaled(self, value: Typed, scale: int) -> int:
        """An integer or decimal as a decimal with more digits behind the point."""
        more = scale - value.type.scale
        return value.node if more == 0 else self.add("multiply", value.node, self.integer(10**more))

    def arithmetic(self, name: str, args: tuple[Expr, ...], times: str | None = None) -> Typed:
        a, b = self.pair(name, args)
        kinds = {a.type.kind, b.type.kind}
        if kinds <= {"date", "timestamp", "integer"} and kinds - {"integer"}:
            return date_arithmetic(self, name, a, b, args, times)
        if not (a.type.is_numeric and b.type.is_numeric):
            raise mismatch(name, args, a, b)
        if kinds == {"decimal", "float"} and name in ("add", "subtract", "multiply"):
            a, b = self.exact(a, b) or (a, b)
            kinds = {a.type.kind, b.type.kind}
        if name == "divide" or "float" in kinds:
            node = self.add(name, self.as_float(a), self.as_float(b), is_number=True)
            return Typed(node, FLOAT)
        kind = INTEGER
        if "decimal" in kinds and name == "multiply":
            kind = ColumnType("decimal", scale=a.type.scale + b.type.scale)
            if kind.scale > MOST_DIGITS:
                raise OverflowError(
                    f"{shown(args[0])} * {shown(args[1])}: it has {kind.scale} digits behind the point, and "
                    f"{MOST_DIGITS} fit: cast one to float before"
                )
        elif "decimal" in kinds:
            scale = max(a.type.scale, b.type.scale)
            kind = ColumnType("decimal", scale=0 if name == "floor_divide" else scale)
            a, b = Typed(self.scaled(a, scale), kind), Typed(self.scaled(b, scale), kind)
        nullable = None
        if name in ("floor_divide", "modulo"):
            divisor = self.nodes[b.node]
            known = divisor.op == "constant" and divisor.bits != 0
            nullable = not known or self.nodes[a.node].nullable
        return Typed(self.add(name, a.node, b.node, nullable=nullable), kind)

    def comparison(self, name: str, args: tuple[Expr, ...]) -> Typed:
        a, b = self.pair(name, args)
        kinds = {a.type.kind, b.type.kind}
        if "string" in kinds:
            return text_comparison(self, name, args, a, b)
        if kinds == {"date", "timestamp"}:
            a, b = as_time(self, a, b.type), as_time(self, b, a.type)
        elif a.type.is_numeric and b.type.is_numeric:
            return self.number_comparison(name, a, b)
        elif kinds != {"boolean"} and a.type.kind != b.type.kind:
            raise mismatch(name, args, a, b)
        if a.type.kind == "timestamp":
            a, b = in_unit(self, a, b.type), in_unit(self, b, a.type)
        return Typed(self.add(name, a.node, b.node), BOOLEAN)

    def number_comparison(self, name: str, a: Typed, b: Typed) -> Typed:
        kinds = {a.type.kind, b.type.kind}
        if "float" in kinds:
            exact = self.exact(a, b)
            if exact is None:
                return Typed(self.add(name, self.as_float(a), self.as_float(b)), BOOLEAN)
            a, b = exact
        if a.type.is_number:
            return Typed(self.add(name, a.node, b.node), BOOLEAN)
        scale = max(a.type.scale, b.type.scale)
        node = self.add(name, self.scaled(a, scale), self.scaled(b, scale))
        return Typed(node, BOOLEAN)

    def exact(self, a: Typed, b: Typed) -> tuple[Typed, Typed] | None:
        """A floating-point literal beside an integer or a decimal, as such, where it is one."""
        for value, other, first in ((a, b, True), (b, a, False)):
            node = self.nodes[value.node]
            if not value.type.is_number or node.op != "constant" or other.type.is_number:
                continue
            number = struct.unpack("<d", struct.pack("<Q", node.bits))[0]
            if number != number or abs(number) >= 1e15:
                return None
            written = decimal.Decimal(repr(number)).normalize()
            scale = max(other.type.scale, -int(written.as_tuple().exponent))
            if scale > other.type.scale and other.type.kind == "integer":
                return None
            digits = int(written.scaleb(scale))
            if scale > MOST_DIGITS or digits not in INT64:
                return None
            whole = Typed(self.integer(digits), ColumnType("decimal", scale=scale))
            return (whole, other) if first else (other, whole)
        return None

    def membership(self, arg: Expr, values: Sequence[Any]) -> Typed:
        value = self.lower(arg)
        given = [each for each in values if each is not None]
        if value.type.kind == "string":
            other = next((each for each in given if not isinstance(each, str)), None)
            if other is not None:
                raise TypeError(
                    f"{shown(arg)} is a text, and {other!r} is none: give texts, or cast it before"
                )
            words = set(given)
            return test(self, value, "is_in", lambda text: text in words, frozenset(words))
        whole = self.whole_numbers(value, given)
        if whole:
            between = within(self, value.node, np.unique(whole))
            if between is not None:
                return Typed(between, BOOLEAN)
        if whole is not None:
            return self.null_where(value, self.among(value, whole))
        found: list[Expr] = [Call("equal", (arg, Value(one))) for one in given]
        while len(found) > 1:  # as a tree: a chain would be as deep as it is long
            pairs = [Call("logic_or", (a, b)) for a, b in zip(found[::2], found[1::2], strict=False)]
            found = [*pairs, *found[2 * len(pairs) :]]
        return self.lower(found[0])

    def whole_numbers(self, value: Typed, given: Sequence[Any]) -> list[int] | None:
        """What the values are for the engine; None: they are floating-point numbers, or far apart."""
        if value.type.is_number:
            return None if given else []
        bits = []
        for one in given:
            literal = self.literal(as_date(one, value), value.type)
            mine, other = literal.type, value.type
            if (mine.kind, mine.scale, mine.unit) != (other.kind, other.scale, other.unit):
                return None
            node = self.nodes[literal.node]
            bits.append(node.bits - (1 << 64) if node.bits >> 63 else node.bits)
        return bits if not bits or max(bits) - min(bits) < LOOKUP_ROWS else None

    def among(self, value: Typed, given: Sequence[int]) -> int:
        """Whether a value is one of these; a null is none."""
        if not given:
            return self.integer(0)
        low = min(given)
        answers = np.zeros(max(given) - low + 1, np.uint64)
        answers[np.array(given) - low] = 1
        number = self.table(answers, np.ones(len(answers), np.uint8))
        found = self.add("lookup", value.node, number=number, bits=low, nullable=True)
        return self.add("fill_null", found, self.integer(0), nullable=False)

    def null_where(self, value: Typed, node: int) -> Typed:
        """The same, null where a value is."""
        if not self.nodes[value.node].nullable:
            return Typed(self.add("fill_null", node, self.integer(0), nullable=False), BOOLEAN)
        missing = self.add("is_null", value.node, nullable=False)
        nothing = self.add("null", nullable=True)
        return Typed(self.add("select", missing, nothing, node, nullable=True), BOOLEAN)

    def choice(self, name: str, args: tuple[Expr, ...]) -> Typed:
        values = args[-2:] if name == "select" else args
        a, b = self.pair(name, (values[0], values[1]))
        if a.type.kind == b.type.kind == "string":
            a, b = merged(self, a, b)
        if a.type.is_numeric and b.type.is_numeric and a.type != b.type:
            if "float" in (a.type.kind, b.type.kind):
                a, b = Typed(self.as_float(a), FLOAT), Typed(self.as_float(b), FLOAT)
            elif "decimal" in (a.type.kind, b.type.kind):
                kind = ColumnType("decimal", scale=max(a.type.scale, b.type.scale))
                a, b = Typed(self.scaled(a, kind.scale), kind), Typed(self.scaled(b, kind.scale), kind)
            else:
                a, b = Typed(a.node, INTEGER), Typed(b.node, INTEGER)
        if {a.type.kind, b.type.kind} == {"date", "timestamp"}:
            a, b = as_time(self, a, b.type), as_time(self, b, a.type)
        if a.type.kind == b.type.kind == "timestamp":
            a, b = in_unit(self, a, b.type), in_unit(self, b, a.type)
        if a.type.kind != b.type.kind:
            raise mismatch(name, values, a, b)
        if name == "fill_null":
            nullable = self.nodes[b.node].nullable
            return Typed(self.add(name, a.node, b.node, nullable=nullable), a.type)
        condition = self.truth(args[0])
        nullable = self.nodes[a.node].nullable or self.nodes[b.node].nullable
        return Typed(self.add(name, condition, a.node, b.node, nullable=nullable), a.type)


def widest(kind: ColumnType) -> ColumnType:
    """What arithmetic gives: 64 bits."""
    return FLOAT if kind.is_number else INTEGER if kind.kind == "integer" else kind
