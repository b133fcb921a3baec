"""Joins in which a row meets any number of others, in a SELECT: two tables, or those before a join and its
own, become one of their pairs, and the rest of the statement is about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.columns.expressions import Column, Expr
from penstock.columns.pairs import Paired, Sides
from penstock.columns.prepared import Runnable
from penstock.columns.results import Result
from penstock.columns.statement_expressions import Translator
from penstock.columns.statement_nodes import Node, columns_in, conjuncts, expressions, kind_of, refuse
from penstock.columns.statement_rewriting import is_result, parts_of, shown_name
from penstock.columns.statement_tables import Source, first_there, merged
from penstock.columns.table import open_table

ALONE = "put the join into a subquery behind FROM"
OTHER = -1


class Plans(Protocol):
    """What pairs need of who plans statements."""

    def plan(self, node: Node) -> Runnable: ...


@dataclass
class PairPlan:
    """A join of what two plans give."""

    first: Runnable
    second: Runnable
    paired: Paired

    @property
    def is_lasting(self) -> bool:
        return self.first.is_lasting and self.second.is_lasting

    def collect(self) -> Result:
        return self.paired.of(self.first.collect(), self.second.collect())

    def forget(self) -> None:
        self.first.forget()
        self.second.forget()

    def explain(self, analyze: bool = False) -> str:
        what = f"{self.paired.how} join, in memory, with"
        return "\n".join([self.first.explain(analyze), what, self.second.explain(analyze)])


@dataclass
class _Side:
    """Tables of a side, and what is selected of them."""

    sources: list[Source]
    names: set[str]
    keys: list[Node] = field(default_factory=list)
    conditions: list[Node] = field(default_factory=list)


class Pairs:
    """Of a SELECT's tables.

    Args:
        node: The SELECT, which is changed.
        sources: Its tables.
        first: Those of the first side: one, or all before the second.
        second: The other side.
        alias: What the table of the pairs is called.

    Raises:
        ValueError: What cannot be said of pairs.
    """

    def __init__(
        self, node: Node, sources: list[Source], first: list[Source], second: Source, alias: str
    ) -> None:
        assert second.how != "semi"
        assert second.how != "anti"
        self.how: Sides = second.how
        self.node, self.sources, self.alias = node, sources, alias
        self.sides = [_Side(each, {source.alias for source in each}) for each in (first, [second])]
        parts = (part for name, part in parts_of(node) if name not in ("from_", "joins"))
        if any(part.find(expressions().Query) for part in parts):
            refuse(second.node, f"no subquery in another clause stands beside this join: {ALONE}")
        self._write_stars()
        self.called = {each.alias.lower() for each in node.expressions if kind_of(each) == "Alias"}
        self.shown = {shown_name(each).lower() for each in node.expressions}
        self.rest = self._share(second)
        self.named = dict.fromkeys(self._named())

    def plan(self, plans: Plans) -> PairPlan:
        """The join itself."""
        both = [plans.plan(self._select(side)) for side in self.sides]
        rest = None if self.rest is None else Translator(self._column)(self.rest)
        met = None if rest is None else _Met(rest)
        return PairPlan(both[0], both[1], Paired(len(self.sides[0].keys), self.how, met))

    def statement(self) -> Node:
        """The SELECT with the pairs as its first table."""
        known, node = expressions(), self.node
        self._name_results()
        of_sides = [source for side in self.sides for source in side.sources]
        last = max(self.sources.index(source) for source in of_sides)
        others = [source for source in (*self.sources[last:], *self.sources[:last]) if source not in of_sides]
        joins = [_joined(source) for source in others]
        where = node.args.get("where")
        conditions = [] if where is None else [where.this]
        if self.how == "inner":
            conditions += [on.copy() for source in of_sides for on in source.on]
        node.set("from_", known.From(this=known.Table(this=known.to_identifier(self.alias, quoted=True))))
        node.set("where", known.Where(this=known.and_(*conditions)) if conditions else None)
        node.set("joins", joins)
        for column in list(self._columns(joined=True)):
            column.replace(self._instead(column))
        return node

    def _owner(self, column: Node) -> Source | None:
        """The table that has a column; None: it is the name of a result."""
        name = column.name.lower()
        found = [s for s in self.sources if name in s.names and s.is_meant(column)]
        if len(found) > 1:
            refuse(column, "several tables have this column: say which")
        return found[0] if found else None

    def _columns(self, joined: bool = False) -> Iterator[Node]:
        """The columns that the SELECT names; `joined`: those of conditions behind ON, too."""
        for name, part in parts_of(self.node):
            if name == "from_" or (name == "joins" and not (joined and part.args.get("on"))):
                continue
            for column in columns_in(part.args["on"] if name == "joins" else part):
                names = self.called if name in ("order", "having") else set()
                if name == "order" and kind_of(column.parent) == "Ordered":
                    names = self.shown
                if not is_result(column, names):
                    yield column

    def _named(self) -> Iterator[tuple[str, str]]:
        """Columns of both sides that something is asked of, by table and name."""
        ons = (column for source in self.sources for on in source.on for column in columns_in(on))
        for column in (*self._columns(), *ons):
            owner = self._owner(column)
            if owner is not None:
                named = [(owner.alias, column.name.lower()), *self._merged(owner, column)]
                yield from (each for each in named if any(each[0] in side.names for side in self.sides))

    def _merged(self, owner: Source, column: Node) -> list[tuple[str, str]]:
        """What else a column behind USING may come from: where the first table has none, another's."""
        name = column.name.lower()
        others = [] if column.table else merged(name, self.sources[self.sources.index(owner) + 1 :])
        return [(other.alias, name) for other in others]

    def _share(self, second: Source) -> Node | None:
        """Gives the sides their keys and conditions, and returns what is asked of pairs."""
        where = self.node.args.get("where")
        given = [] if where is None else conjuncts(where.this)
        if self.how == "inner":
            given += [on for source in self.sources if source.how == "inner" for on in source.on]
        else:
            self._push(given, {"left": [0], "right": [1], "full": []}[self.how])
            given = list(second.on)
            for column in (column for on in given for column in columns_in(on)):
                if self._owner(column) is not None and OTHER in self._sides_of(column):
                    refuse(column, "ON of a join behind a comma takes no columns of tables before the comma")
        rest = []
        for each in given:
            both = (each.this, each.expression) if kind_of(each) == "EQ" else ()
            sides = [self._sides_of(side) for side in both]
            if sides in ([{0}, {1}], [{1}, {0}]):
                for number, part in zip((0, 1), (each.this, each.expression), strict=True):
                    self.sides[min(sides[number])].keys.append(part)
            elif self.how != "inner":
                rest.append(each)
        if self.how == "inner":
            self._push(given, [0, 1])
        elif self.how != "full":
            kept = {"left": 1, "right": 0}[self.how]
            self.sides[kept].conditions += [each for each in rest if self._sides_of(each) == {kept}]
            rest = [each for each in rest if self._sides_of(each) != {kept}]
        for side in self.sides:
            side.keys = side.keys or [expressions().Literal.number(1)]
        return expressions().and_(*rest) if rest else None

    def _push(self, conditions: Sequence[Node], numbers: Sequence[int]) -> None:
        """Conditions of one side alone leave rows out before."""
        for number in numbers:
            self.sides[number].conditions += [each for each in conditions if self._sides_of(each) == {number}]

    def _sides_of(self, node: Node) -> set[int]:
        """Numbers of the sides whose columns an expression names; OTHER: of another table, or a result."""
        found = set()
        for column in columns_in(node):
            owner = self._owner(column)
            aliases = (
                [owner.alias, *(a for a, _ in self._merged(owner, column))] if owner is not None else [""]
            )
            for alias in aliases:
                found.add(next((k for k, side in enumerate(self.sides) if alias in side.names), OTHER))
        return found

    def _select(self, side: _Side) -> Node:
        """A side's keys, and its columns that something is asked of."""
        known = expressions()
        items = [known.alias_(key.copy(), f"key {k}", quoted=True) for k, key in enumerate(side.keys)]
        items += [
            known.alias_(known.column(name, table=alias), f"{alias}.{name}", quoted=True)
            for alias, name in self.named
            if alias in side.names
        ]
        if not self.named and side is self.sides[0]:
            items.append(known.alias_(known.Literal.number(1), "row", quoted=True))
        select = known.Select(expressions=items)
        select.set("from_", known.From(this=_table(side.sources[0])))
        select.set("joins", [source.node.copy() for source in side.sources[1:]])
        if side.conditions:
            select.set("where", known.Where(this=known.and_(*(each.copy() for each in side.conditions))))
        return select

    def _column(self, node: Node) -> Expr | None:
        """In a condition of pairs."""
        if kind_of(node) != "Column":
            return None
        owner = self._owner(node)
        return None if owner is None else Column(f"{owner.alias}.{node.name.lower()}")

    def _instead(self, column: Node) -> Node:
        """What stands for a column of a table behind the pairs."""
        owner = self._owner(column)
        if owner is None:
            return column
        names = [(owner.alias, column.name.lower()), *self._merged(owner, column)]
        return first_there([self._behind(*each) for each in names])

    def _behind(self, alias: str, name: str) -> Node:
        """A column of a table where the pairs stand."""
        known = expressions()
        if not any(alias in side.names for side in self.sides):
            return known.column(name, table=alias)
        return known.column(f"{alias}.{name}", table=self.alias, quoted=True)

    def _name_results(self) -> None:
        """Results keep the names that they have now."""
        known = expressions()
        items = [
            each
            if kind_of(each) == "Alias"
            else known.alias_(each, shown_name(each), quoted=True, copy=False)
            for each in self.node.expressions
        ]
        self.node.set("expressions", items)

    def _write_stars(self) -> None:
        """Puts columns in the places of stars."""
        known, items = expressions(), []
        for each in self.node.expressions:
            star = each.this if kind_of(each) == "Column" else each
            if kind_of(star) != "Star":
                items.append(each)
                continue
            if any(star.args.values()):
                refuse(each, f"beside this join a star is a plain one: {ALONE}")
            for number, source in enumerate(self.sources):
                is_all = star is each
                if (is_all or each.table.lower() == source.alias) and source.how not in ("semi", "anti"):
                    for low, name in source.names.items():
                        if not (is_all and low in source.using):
                            of = [source, *(merged(low, self.sources[number + 1 :]) if is_all else ())]
                            column = first_there([known.column(low, table=one.alias) for one in of])
                            items.append(known.alias_(column, name, quoted=True))
        self.node.set("expressions", items)


def chain(sources: Sequence[Source], number: int) -> list[Source]:
    """The tables before one that are joined with it: a comma begins anew."""

    def is_comma(source: Source) -> bool:
        is_join = kind_of(source.node) == "Join"
        return is_join and not any(source.node.args.get(part) for part in ("kind", "side", "on", "using"))

    if is_comma(sources[number]):
        return list(sources[:number])
    first = max((k for k in range(number) if is_comma(sources[k])), default=0)
    return list(sources[first:number])


@dataclass(frozen=True)
class _Met:
    """Which rows of a result meet a condition."""

    condition: Expr

    def __call__(self, result: Result) -> npt.NDArray[np.bool_]:
        with open_table(result, executor="cpu") as table:
            (met,) = table.select(met=self.condition).collect().columns
        found: npt.NDArray[np.bool_] = met.valid & (met.bits != 0)
        return found


def _joined(source: Source) -> Node:
    """As one of the joins behind the pairs."""
    known = expressions()
    given = source.node.args if kind_of(source.node) == "Join" else {}
    on = known.and_(*source.on) if source.on else None
    return known.Join(this=_table(source), kind=given.get("kind"), side=given.get("side"), on=on)


def _table(source: Source) -> Node:
    """As FROM names it."""
    return (source.node.this if kind_of(source.node) == "Join" else source.node).copy()
