"""The engine's program of a query: instructions of values, and the registers that they are in."""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.columns.graph import INT64, Node
from penstock.columns.joining import JoinTable
from penstock.columns.lowering import Graph

OPS = [
    "load",
    "constant",
    "null",
    "copy",
    "convert_to_float",
    "convert_to_integer",
    "add",
    "subtract",
    "multiply",
    "negate",
    "absolute",
    "divide",
    "floor_divide",
    "modulo",
    "minimum",
    "maximum",
    "floor",
    "ceil",
    "square_root",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "logic_and",
    "logic_or",
    "logic_not",
    "is_null",
    "is_nan",
    "select",
    "fill_null",
    "lookup",
    "find",
    "sortable",
    "year",
    "month",
    "day",
    "weekday",
    "bit_and",
    "bit_or",
    "bit_xor",
    "shift_left",
    "shift_right",
]
CODE = {name: number for number, name in enumerate(OPS)}
REGISTERS = 32
INSTRUCTIONS = 4096
HOISTED = 8
"""Constants that stay in registers; others are made anew wherever they are used."""


class TooManyValuesError(ValueError):
    """There are not so many registers."""


@dataclass
class Registers:
    """Which value is in which register. One that may hold nulls holds no others: see evaluate.hpp."""

    free: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    used: int = 0

    def take(self, nullable: bool) -> int:
        if self.free[nullable]:
            return self.free[nullable].pop()
        if self.used == REGISTERS:
            raise TooManyValuesError(
                f"the query needs more than {REGISTERS} values of a row at once: ask for less of it, or make "
                "it two queries"
            )
        self.used += 1
        return self.used - 1

    def give(self, register: int, nullable: bool) -> None:
        self.free[nullable].append(register)


@dataclass(frozen=True)
class Program:
    """What the engine takes, and where the results are."""

    parts: dict[str, Any]
    outputs: list[int]
    tables: list[Any]

    @property
    def native(self) -> dict[str, Any]:
        """With the tables of joins as they lie now."""
        tables = [each.lookup() if isinstance(each, JoinTable) else each for each in self.tables]
        return {**self.parts, "tables": tables}


class Emitter:
    """Instructions for some of a graph's values."""

    def __init__(self, graph: Graph, registers: Registers, fixed: dict[int, int]) -> None:
        self.graph, self.registers = graph, registers
        self.at = dict(fixed)
        self.fixed = set(fixed)
        self.code: list[bytes] = []

    def emit(self, wanted: Sequence[int], kept: Iterable[int]) -> None:
        """Brings values into registers. Those of `kept` stay; others go after their last use."""
        nodes = self.graph.nodes
        order = [node for node in needed(self.graph, wanted, self.at) if node not in self.at]
        staying = set(kept) | set(wanted) | self.fixed
        anew = {node for node in order if nodes[node].op in ("constant", "null")} - staying
        left: dict[int, int] = {}
        for node in order:
            for arg in nodes[node].args:
                left[arg] = left.get(arg, 0) + 1
        for node in order:
            if node in anew:
                continue
            value = nodes[node]
            for arg in dict.fromkeys(value.args):
                if arg in anew:
                    self.put(arg)
            args = [self.at[arg] for arg in value.args]
            self.put(node, args)
            for arg in value.args:
                left[arg] -= 1
                if left[arg] == 0 and arg not in staying and arg in order and arg not in anew:
                    self.drop(arg)
            for arg in anew.intersection(value.args):
                self.drop(arg)

    def put(self, node: int, args: Sequence[int] = ()) -> None:
        """A value into a register of its own."""
        value = self.graph.nodes[node]
        self.at[node] = self.registers.take(value.nullable)
        self.write(value, self.at[node], args)

    def emit_results(self, outputs: Sequence[int], registers: Sequence[int]) -> None:
        """Brings values into registers of their own, one after the other."""
        for k, (node, register) in enumerate(zip(outputs, registers, strict=True)):
            mine = needed(self.graph, [node], self.at)
            later = set(needed(self.graph, outputs[k + 1 :], {*self.at, *mine}))
            self.emit([node], later)
            self.copy_to(node, register)
            for done in [each for each in self.at if each not in self.fixed and each not in later]:
                self.drop(done)

    def drop(self, node: int) -> None:
        self.registers.give(self.at.pop(node), self.graph.nodes[node].nullable)

    def write(self, value: Node, to: int, args: Sequence[int]) -> None:
        a = args[0] if args else 0
        b = args[1] if len(args) > 1 else a
        c = args[2] if len(args) > 2 else 0
        reads_number = value.is_number or any(self.graph.nodes[arg].is_number for arg in value.args)
        self.code.append(
            struct.pack(
                "<8BIIQ",
                CODE[value.op],
                reads_number,
                value.nullable,
                to,
                a,
                b,
                c,
                0,
                value.number,
                0,
                value.bits,
            )
        )

    def copy_to(self, node: int, register: int) -> None:
        value = self.graph.nodes[node]
        self.write(Node("copy", (node,), 0, 0, value.is_number, value.nullable), register, [self.at[node]])


def needed(graph: Graph, wanted: Iterable[int], known: Container[int] = ()) -> list[int]:
    """Values and their operands, operands first; not those of values that are known."""
    found: set[int] = set()
    todo = list(wanted)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += () if node in known else graph.nodes[node].args
    return sorted(found)


def assemble(graph: Graph, condition: int | None, outputs: Sequence[int]) -> Program:
    """The program of a query: a condition of each row, and what is computed of those that meet it."""
    if condition is not None and graph.nodes[condition].op in ("constant", "null"):
        condition = graph.add("logic_and", condition, condition)  # a filter of no instruction is no filter
    registers = Registers()
    everything = needed(graph, [*outputs, *([] if condition is None else [condition])])
    constants = [node for node in everything if graph.nodes[node].op in ("constant", "null")][:HOISTED]
    dense = Emitter(graph, registers, {})
    dense.emit(constants, constants)
    dense.fixed = set(dense.at)
    constant_count = len(dense.code)
    fixed = dict(dense.at)
    results = [registers.take(graph.nodes[node].nullable) for node in outputs]
    mark = (registers.used, {k: list(v) for k, v in registers.free.items()})
    scanned: list[int] = []
    if condition is not None:
        in_condition = needed(graph, [condition])
        loads = [node for node in in_condition if graph.nodes[node].op == "load"]
        bounded = {column for column, _, _ in bounds(graph, condition)}
        noted_loads = [node for node in loads if graph.nodes[node].number in bounded]
        dense.emit([condition], [*in_condition_used(graph, outputs, in_condition), *noted_loads])
        scanned = sorted({graph.nodes[node].number for node in loads})
    filter_end = len(dense.code)
    notes = [] if condition is None else noted(graph, dense)
    met = 0 if condition is None else dense.at[condition]
    dense.emit_results(outputs, results)
    if condition is None:
        scanned = sorted({graph.nodes[node].number for node in everything if graph.nodes[node].op == "load"})
    # What follows may use the registers of the condition: it runs after it, or instead. Which hold nulls
    # stays as it is.
    whole, residual = (None, None) if condition is None else parted(graph, condition)
    rest_of_condition = Emitter(graph, after(dense.code, mark, registers.used), fixed)
    if residual is not None:
        rest_of_condition.emit([residual], [])
    codes = [*dense.code, *rest_of_condition.code]
    last = max(registers.used, rest_of_condition.registers.used)
    sparse = Emitter(graph, after(codes, mark, last), fixed)
    sparse.emit_results(outputs, results)
    if max(len(dense.code), len(sparse.code), len(rest_of_condition.code)) > INSTRUCTIONS:
        raise ValueError(f"the query has more than {INSTRUCTIONS} steps: make it two queries")
    parts = {
        "dense": b"".join(dense.code),
        "sparse": b"".join(sparse.code),
        "constants": constant_count,
        "filter": filter_end,
        "sparse_filter": 0,
        "condition": met,
        "scanned": scanned,
        "bounds": [] if condition is None else bounds(graph, condition),
        "ranges": [] if whole is None else ranges(graph, whole),
        "residual": b"".join(rest_of_condition.code),
        "residual_condition": 0 if residual is None else rest_of_condition.at[residual],
        "notes": notes,
    }
    return Program(parts, results, graph.tables)


def in_condition_used(graph: Graph, outputs: Sequence[int], in_condition: Sequence[int]) -> list[int]:
    """Values of the condition that the outputs use, too, other than by such a value."""
    both = set(needed(graph, outputs, set(in_condition))) & set(in_condition)
    return sorted(both)


def after(codes: Sequence[bytes], mark: tuple[int, dict[bool, list[int]]], last: int) -> Registers:
    """Registers for another way through the same rows: those that `codes` has given a class keep it."""
    first, free = mark
    registers = Registers({kind: list(each) for kind, each in free.items()}, first)
    kinds: dict[int, bool] = {}
    for code in codes:
        _, _, nullable, to = struct.unpack_from("<4B", code)
        kinds[to] = bool(nullable)
    for register in range(first, last):
        if register not in registers.free[True] and register not in registers.free[False]:
            registers.give(register, kinds.get(register, False))
    registers.used = last
    return registers


def noted(graph: Graph, emitter: Emitter) -> list[tuple[int, int, bool]]:
    """Columns whose values lie in registers when the condition ends."""
    return [
        (graph.nodes[node].number, register, graph.nodes[node].is_number)
        for node, register in emitter.at.items()
        if graph.nodes[node].op == "load"
    ]


def sortable(value: float) -> int:
    """As libs/columns/column_view.hpp has it."""
    if value != value:
        return INT64[-1]
    bits = int(struct.unpack("<q", struct.pack("<d", value + 0.0))[0])
    return bits ^ INT64[-1] if bits < 0 else bits


def bounds(graph: Graph, condition: int) -> list[tuple[int, int, int]]:
    """What rows that meet a condition have in a column, where it says so: column, least, greatest."""
    node = graph.nodes[condition]
    if node.op == "logic_and":
        return [*bounds(graph, node.args[0]), *bounds(graph, node.args[1])]
    if node.op not in ("equal", "less", "less_equal"):
        return []
    a, b = (graph.nodes[arg] for arg in node.args)
    if {a.op, b.op} != {"load", "constant"}:
        return []
    constant, column = (b, a) if a.op == "load" else (a, b)
    signed = constant.bits - (1 << 64) if constant.bits >> 63 else constant.bits
    value = sortable(struct.unpack("<d", struct.pack("<Q", constant.bits))[0]) if column.is_number else signed
    low, high = INT64[0], INT64[-1]
    if node.op == "equal":
        return [(column.number, value, value)]
    strict = node.op == "less"
    if a.op == "load":
        return [(column.number, low, max(value - strict, low))]
    return [(column.number, min(value + strict, high), high)]


def parted(graph: Graph, condition: int) -> tuple[int | None, int | None]:
    """A condition as one that is ranges of columns and nothing else, and one that is the rest."""
    parts: tuple[list[int], list[int]] = ([], [])
    todo = [condition]
    while todo:
        node = graph.nodes[todo[-1]]
        if node.op == "logic_and" and node.args[0] != node.args[1]:
            todo[-1:] = node.args
        else:
            parts[0 if is_range(graph, todo[-1]) else 1].append(todo.pop())

    def joined(nodes: list[int]) -> int | None:
        whole = nodes[0] if nodes else None
        for each in nodes[1:]:
            assert whole is not None
            whole = graph.add("logic_and", whole, each)
        return whole

    whole, rest = joined(parts[0]), joined(parts[1])
    if rest is not None and graph.nodes[rest].op in ("constant", "null"):
        rest = graph.add("logic_and", rest, rest)  # as in assemble
    return whole, None if whole is None else rest


def ranges(graph: Graph, condition: int) -> list[tuple[int, int, int]]:
    """The bounds of columns that a condition is, one for each."""
    whole: dict[int, tuple[int, int]] = {}
    for column, low, high in bounds(graph, condition):
        least, greatest = whole.get(column, (INT64[0], INT64[-1]))
        whole[column] = max(low, least), min(high, greatest)
    return [(column, low, high) for column, (low, high) in whole.items()]


def is_range(graph: Graph, condition: int) -> bool:
    """Whether `bounds` says all that a comparison does: a strict one at the end of what there is does not."""
    found = bounds(graph, condition)
    if graph.nodes[condition].op != "less":
        return len(found) == 1
    return bool(found) and INT64[0] < found[0][2] and found[0][1] < INT64[-1]
