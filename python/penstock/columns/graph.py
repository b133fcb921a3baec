"""Values of a query with what they mean, alike ones once: what assembling makes a program of."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.columns.types import ColumnType

if TYPE_CHECKING:
    from penstock.columns.joining import Join, JoinTable, Way

INT64 = range(-(1 << 63), 1 << 63)


class Schema(Protocol):
    """What the lowering asks of a table."""

    def column(self, name: str) -> tuple[int, ColumnType, bool]:
        """Number, type, and whether there are nulls. Raises KeyError with a sentence."""


@dataclass(frozen=True)
class Node:
    """A value of the program; those that are alike are one."""

    op: str
    args: tuple[int, ...]
    number: int
    bits: int
    is_number: bool
    nullable: bool


@dataclass(frozen=True)
class Typed:
    """A value with what it means."""

    node: int
    type: ColumnType


@dataclass
class Values:
    """Values, those of operands before those that use them."""

    schema: Schema
    nodes: list[Node] = field(default_factory=list)
    numbers: dict[Node, int] = field(default_factory=dict)
    tables: list[Any] = field(default_factory=list)
    joins: tuple[Join, ...] = ()
    numbers_of_kept: dict[Any, int] = field(default_factory=dict)
    keys: dict[Join, tuple[int, Way]] = field(default_factory=dict)
    """A row's key of each join, and the way to the other table's rows by it."""

    def add(
        self,
        op: str,
        *args: int,
        number: int = 0,
        bits: int = 0,
        is_number: bool = False,
        nullable: bool | None = None,
    ) -> int:
        if nullable is None:
            nullable = any(self.nodes[arg].nullable for arg in args)
        known = self.folded(op, args)
        if known is not None:
            return known
        node = Node(op, args, number, bits & (1 << 64) - 1, is_number, nullable)
        if node not in self.numbers:
            self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self.numbers[node]

    def folded(self, op: str, args: tuple[int, ...]) -> int | None:
        """The constant that is made of constants: bounds and zone maps see it as one."""
        given = [self.nodes[arg] for arg in args]
        if op not in ("multiply", "convert_to_float", "divide") or any(
            each.op != "constant" for each in given
        ):
            return None
        if op == "divide" or given[0].is_number:
            a, b = (struct.unpack("<d", struct.pack("<Q", each.bits))[0] for each in given)
            return None if op == "divide" and b == 0 else self.float(a / b if op == "divide" else a * b)
        whole = [each.bits - (1 << 64) if each.bits >> 63 else each.bits for each in given]
        if op == "convert_to_float":
            return self.float(float(whole[0]))
        product = whole[0] * whole[1]
        return self.integer(product) if product in INT64 else None

    def integer(self, value: int) -> int:
        if value not in INT64:
            raise OverflowError(f"{value}: it does not fit 64 bits: give a smaller one, or a float")
        return self.add("constant", bits=value, nullable=False)

    def float(self, value: float) -> int:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return self.add("constant", bits=bits, is_number=True, nullable=False)

    def kept(self, table: JoinTable) -> int:
        """The number of a table that lies in the executor's memory."""
        if table not in self.numbers_of_kept:
            self.numbers_of_kept[table] = len(self.tables)
            self.tables.append(table)
        return self.numbers_of_kept[table]

    def table(self, values: Any, valid: Any) -> int:
        """The number of a table of 64-bit values."""
        for number, each in enumerate(self.tables):
            if isinstance(each, tuple) and each[0] is values and each[1] is valid:
                return number
        self.tables.append((np.ascontiguousarray(values, np.uint64), np.ascontiguousarray(valid, np.uint8)))
        return len(self.tables) - 1
