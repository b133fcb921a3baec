"""Groups of a query by any keys: in an array of sums where keys are near each other, in a hash table else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penstock.columns.aggregating import APART, DISTINCT, AggregatePlan, Sums
from penstock.columns.assembling import Program
from penstock.columns.distinct import distinct
from penstock.columns.expressions import Aggregate, Alias, Call, Column, Expr, aggregates_of, name_of
from penstock.columns.having import ranges_of
from penstock.columns.key_ranges import has_squares, values_of
from penstock.columns.lowering import Graph
from penstock.columns.results import Account, Result, ResultColumn
from penstock.columns.selecting import account_of
from penstock.columns.shown import shown
from penstock.columns.types import INTEGER, ColumnType, numbers_of_sorted
from penstock.columns.variances import variance

if TYPE_CHECKING:
    from penstock.columns.query import Query

MOST_IN_ARRAY = 1 << 16
"""Combinations of keys that have sums whether rows have them or not."""
OF_WORD = 1 << 63
"""Values of a word of digits; -1 marks what is free (libs/columns/group_slots.hpp)."""
KEYS_PER_PASS = 8
HALF = 1 << 32


@dataclass(frozen=True)
class Key:
    """A key of group_by: `count` values from `low` on, and the null behind them."""

    expression: Expr
    type: ColumnType
    nullable: bool
    low: int = 0
    count: int = -1
    """-1: not known."""

    @property
    def size(self) -> int:
        return max(self.count + self.nullable, 1)

    @property
    def is_far(self) -> bool:
        """Whether its values are more than a word has beside other digits."""
        return self.type.is_number or self.size > OF_WORD

    def between(self, low: int, high: int) -> Key:
        return replace(self, low=low, count=high - low + 1)

    def digits(self, graph: Graph) -> list[tuple[int, int]]:
        """Values and how many each may have, 0: a word of its own; the first weighs most."""
        value = graph.lower(self.expression).node
        if not self.is_far:
            digit = value if self.low == 0 else graph.add("subtract", value, graph.integer(self.low))
            if self.nullable:
                digit = graph.add("fill_null", digit, graph.integer(self.count), nullable=False)
            return [(digit, self.size)]
        if self.type.is_number:
            value = graph.add("sortable", value)
        missing = []
        if self.nullable:
            missing = [(graph.add("is_null", value, nullable=False), 2)]
            value = graph.add("fill_null", value, graph.integer(0), nullable=False)
        if self.type.is_number:
            return [*missing, (value, 0)]
        half = graph.integer(HALF)
        upper = graph.add("floor_divide", value, half, nullable=False)
        upper = graph.add("add", upper, graph.integer(HALF // 2))
        return [*missing, (upper, HALF), (graph.add("modulo", value, half, nullable=False), HALF)]

    def column(self, parts: Sequence[npt.NDArray[np.int64]]) -> ResultColumn:
        """Of the groups, from the values of its digits."""
        name = name_of(self.expression)
        if not self.is_far:
            valid = parts[0] != self.count if self.nullable else np.ones(len(parts[0]), bool)
            return ResultColumn(name, self.type, (parts[0] + self.low).view(np.uint64), valid)
        valid = parts[0] == 0 if self.nullable else np.ones(len(parts[0]), bool)
        if self.type.is_number:
            return ResultColumn(name, self.type, numbers_of_sorted(parts[-1].view(np.uint64)), valid)
        upper, lower = parts[-2:]
        return ResultColumn(name, self.type, ((upper - HALF // 2) * HALF + lower).view(np.uint64), valid)


def keys_of(query: Query, read: bool = True) -> list[Key] | None:
    """The keys and their ranges; None: columns would have to be read for them, and are not."""
    graph = query.graph()
    keys = [_declared(query, graph, expression) for expression in query.keys]
    unknown = [k for k, key in enumerate(keys) if key.count < 0]
    if unknown and not read:
        return None
    for first in range(0, len(unknown), KEYS_PER_PASS):
        some = unknown[first : first + KEYS_PER_PASS]
        extremes = [
            made.alias(f"{name}{k}")
            for k in some
            for name, made in (("low", query.keys[k].min()), ("high", query.keys[k].max()))
        ]
        found = replace(query, keys=(), aggregates=tuple(extremes), limit=None, having=None).grouped().columns
        for k, low, high in zip(some, found[::2], found[1::2], strict=True):
            least, most = (int(each.bits.view(np.int64)[0]) for each in (low, high))
            keys[k] = keys[k].between(least, most) if low.valid[0] else replace(keys[k], count=0)
    return keys


def _declared(query: Query, graph: Graph, expression: Expr) -> Key:
    """A key as its type has it, the way it is stored, or the rows of a table that was joined."""
    value = graph.lower(expression)
    key = Key(expression, value.type, graph.nodes[value.node].nullable)
    if value.type.is_number:
        return replace(key, count=0)
    if value.type.kind == "string":
        return replace(key, count=len(value.type.words or ()))
    if value.type.kind == "boolean":
        return replace(key, count=2)
    values = values_of(query, graph, expression)
    if values is None:
        return key
    return replace(key, low=values.start, count=values.stop - values.start)


def in_array(keys: Sequence[Key]) -> int | None:
    """How many sums an array has; None: a hash table is better."""
    whole = 1
    for key in keys:
        whole *= key.size
        if key.type.is_number or whole > MOST_IN_ARRAY:
            return None
    return whole


@dataclass(frozen=True)
class GroupPass:
    """How the groups of a query are found."""

    keys: list[Key]
    groups: int | None
    """Of an array; None: in a hash table."""
    plan: AggregatePlan
    apart: list[Aggregate]
    words: list[list[int]]
    """How many values each digit of each word has."""
    program: Program
    named: list[str]
    """Columns of the table that it names."""


def grouped(query: Query) -> Result:
    """The rows of group_by and agg, in the order of the keys, nulls last. Of `having` as much is met as keeps
    groups from leaving the engine's memory."""
    made = query.once("groups", lambda: _group_pass(query))
    apart = {
        id(each): distinct(query, each) if each.kind in DISTINCT else variance(query, each)
        for each in made.apart
    }
    columns, sums, account = _by_hash(query, made) if made.groups is None else _by_array(query, made)
    sums.apart = apart
    return Result(columns + results_of(query, made.plan, sums, columns), account)


def _group_pass(query: Query) -> GroupPass:
    keys = keys_of(query)
    assert keys is not None
    groups, graph = in_array(keys), query.graph()
    plan, apart = AggregatePlan(graph), []
    for aggregate in (each for expression in query.aggregates or () for each in aggregates_of(expression)):
        plan.add(aggregate)
        if aggregate.kind not in APART:
            continue
        if aggregate.kind not in DISTINCT and has_squares(query, graph, aggregate.of):
            plan.add_variance(aggregate)
        else:
            apart.append(aggregate)
    if groups is None:
        words = words_of(graph, keys)
    else:
        plan.add(Aggregate("len", None))
        words = [digits] if (digits := [digit for key in keys for digit in key.digits(graph)]) else []
    program = query.assembled(graph, [*plan.nodes, *(_packed(graph, word) for word in words)])
    sizes = [[size for _, size in word] for word in words]
    return GroupPass(keys, groups, plan, apart, sizes, program, query.named())


def results_of(
    query: Query, plan: AggregatePlan, sums: Sums, keys: Sequence[ResultColumn]
) -> list[ResultColumn]:
    """The results of each group. What is more than sums, differences, products and ratios of aggregates is
    computed as a query of these and the keys."""
    given = query.aggregates or ()
    others = [expression for expression in given if not plan.is_plain(expression)]
    made = {id(each): plan.finish(each, sums) for each in given if plan.is_plain(each)}
    if others:
        names: dict[int, str] = {}
        nothing = np.zeros(sums.groups, np.uint64)
        parts = [*keys, ResultColumn("group", INTEGER, nothing, np.ones(sums.groups, bool))]
        for aggregate in (each for expression in others for each in aggregates_of(expression)):
            if id(aggregate) not in names:
                names[id(aggregate)] = f"aggregate {len(names)}"
                parts.append(replace(plan.finish(aggregate, sums), name=names[id(aggregate)]))
        with query.table.opened(Result(parts, Account()), executor="cpu") as table:
            found = table.select(*(with_columns(each, names) for each in others)).collect().columns
        made |= {id(each): column for each, column in zip(others, found, strict=True)}
    return [made[id(each)] for each in given]


def with_columns(expression: Expr, names: Mapping[int, str]) -> Expr:
    """An expression with columns in the places of its aggregates."""
    match expression:
        case Aggregate():
            return Column(names[id(expression)])
        case Alias(of, name):
            return Alias(with_columns(of, names), name)
        case Call(name, args, extra):
            return Call(name, tuple(with_columns(arg, names) for arg in args), extra)
    return expression


def _by_array(query: Query, made: GroupPass) -> tuple[list[ResultColumn], Sums, Account]:
    keys, plan, program, groups = made.keys, made.plan, made.program, made.groups
    assert groups is not None
    words, native = query.table.native.aggregate(
        program.native, plan.wanted(program), groups, program.outputs[-1] if keys else None,
        query.table.line_aware,
    )  # fmt: skip
    account = account_of(query, native, made.named)
    found = words.reshape(groups, len(plan.kinds), 3)
    there = found[:, plan.number[("rows", -1)], 2] != 0 if keys else np.ones(1, bool)
    found = found[there]
    account.groups = len(found) if keys else 0
    columns = _columns(keys, made.words, [np.flatnonzero(there)])
    return columns, Sums([found[:, k].T for k in range(len(plan.kinds))], len(found)), account


def _by_hash(query: Query, made: GroupPass) -> tuple[list[ResultColumn], Sums, Account]:
    plan, program, words = made.plan, made.program, made.words
    registers = program.outputs[len(plan.nodes) :]
    # What has passes of its own is of all groups.
    ranges = [] if made.apart else ranges_of(query.having, query.aggregates or (), plan, len(words))
    found, slots, native = query.table.native.group(
        program.native, plan.counted(program), registers, ranges, query.table.line_aware
    )
    account = account_of(query, native, made.named)
    account.groups, account.slots = found.shape[1], slots
    columns = _columns(made.keys, words, list(found.view(np.int64)))
    return columns, plan.sums(found[len(words) :]), account


def words_of(graph: Graph, keys: Sequence[Key]) -> list[list[tuple[int, int]]]:
    """Digits of all keys, in order, as few words as they fit."""
    words: list[list[tuple[int, int]]] = []
    room = 0
    for digit in (digit for key in keys for digit in key.digits(graph)):
        if digit[1] == 0 or room < digit[1]:
            words.append([])
            room = OF_WORD if digit[1] else 0
        words[-1].append(digit)
        room = room // digit[1] if digit[1] else 0
    return words


def _packed(graph: Graph, digits: Sequence[tuple[int, int]]) -> int:
    whole = digits[0][0]
    for digit, size in digits[1:]:
        whole = graph.add("add", graph.add("multiply", whole, graph.integer(size)), digit)
    return whole


def _columns(
    keys: Sequence[Key], sizes: Sequence[Sequence[int]], words: Sequence[npt.NDArray[np.int64]]
) -> list[ResultColumn]:
    """Of the keys, from the words that their digits were packed into."""
    parts: list[npt.NDArray[np.int64]] = []
    for word, of in zip(words, sizes, strict=False):
        rest, found = word, []
        for size in reversed(of[1:]):
            rest, digit = np.divmod(rest, size)
            found.append(digit)
        parts += [rest, *reversed(found)]
    columns, at = [], 0
    for key in keys:
        count = 1 if not key.is_far else (1 if key.type.is_number else 2) + key.nullable
        columns.append(key.column(parts[at : at + count]))
        at += count
    return columns


def described(query: Query, read: bool) -> str:
    """Which way groups are found, for explain."""
    names = ", ".join(shown(key) for key in query.keys)
    keys = keys_of(query, read)
    if keys is None:
        return (
            f"group by {names}: in an array of sums where the keys have at most {MOST_IN_ARRAY} "
            "combinations, else in a hash table"
        )
    groups = in_array(keys)
    if groups is not None:
        return f"group by {names}: in an array of {groups} sums"
    return f"group by {names}: in a hash table, keys of {len(words_of(query.graph(), keys))} words"
