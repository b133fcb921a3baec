"""Window functions of a SELECT: what they are of is selected first; the rest is a query of that and them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.columns.prepared import Runnable
from penstock.columns.results import Result
from penstock.columns.statement_nodes import (
    CALLED,
    Node,
    aggregates_in,
    check_one_argument,
    columns_in,
    expressions,
    kind_of,
    refuse,
)
from penstock.columns.statement_rewriting import shown_name
from penstock.columns.windows import AGGREGATES, Frame, WindowFunction

FUNCTIONS = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist", "Ntile": "ntile", "Lag": "lag", "Lead": "lead", "FirstValue": "first_value",
    "LastValue": "last_value", "NthValue": "nth_value", "Sum": "sum", "Avg": "avg", "Min": "min",
    "Max": "max", "Count": "count",
}  # fmt: skip
PARTS = {"this", "partition_by", "order", "spec", "over", "alias"}
WHOLE = Frame(None, None)


@dataclass
class WindowPlan:
    """What a plan gives, and window functions of that beside it."""

    rows: Runnable
    functions: dict[str, WindowFunction]

    @property
    def is_lasting(self) -> bool:
        return self.rows.is_lasting

    def collect(self) -> Result:
        result = self.rows.collect()
        made = [function.of(result) for function in self.functions.values()]
        for column, name in zip(made, self.functions, strict=True):
            column.name = name
        return Result([*result.columns, *made], result.account)

    def forget(self) -> None:
        self.rows.forget()

    def explain(self, analyze: bool = False) -> str:
        of = ", ".join(function.function for function in self.functions.values())
        return f"{self.rows.explain(analyze)}\nwindow functions, in memory: {of}"


def has_windows(node: Node) -> bool:
    order, known = node.args.get("order"), expressions()
    parts = [*node.expressions, *([] if order is None else [order]), node.args.get("qualify")]
    found = (each for part in parts if part is not None for each in part.find_all(known.Window))
    return any(each.parent_select is node for each in found)


def with_results_named(node: Node, columns: set[str]) -> Node:
    """Puts what is selected in the places of its names and numbers, where other clauses have these and no
    table has such a column."""
    known = expressions()
    items = {shown_name(each).lower(): each.unalias() for each in node.expressions}
    group = node.args.get("group")
    for each in list(group.expressions) if group is not None else ():
        if kind_of(each) == "Literal" and str(each.this).isdigit() and 0 < int(each.this) <= len(items):
            each.replace(node.expressions[int(each.this) - 1].unalias().copy())
    parts = (node.args.get(part) for part in ("where", "group", "having", "qualify", "order"))
    for column in [each for part in parts if part is not None for each in columns_in(part)]:
        name, is_alone = column.name.lower(), kind_of(column.parent) == "Ordered"
        if not column.table and name in items and name not in columns and not is_alone:
            column.replace(known.Paren(this=items[name].copy()))
    return node


class Windows:
    """Of a SELECT.

    Args:
        node: The SELECT, which is changed.
        alias: What the table of its rows and window functions is called.
    """

    def __init__(self, node: Node, alias: str) -> None:
        self.node, self.alias = node, alias
        self.named = {each.this.name.lower(): each for each in node.args.get("windows") or ()}
        self.items: dict[str, tuple[str, Node]] = {}
        """Of the inner SELECT, by their texts: names and expressions."""
        self.functions: dict[str, WindowFunction] = {}
        known = expressions()
        self.outer = self._outer()
        if not self.items:
            self._item(known.Literal.number(1))

    def inner(self) -> Node:
        """The SELECT of what window functions and results are made of."""
        known, select = expressions(), self.node
        made = [known.alias_(each.copy(), name, quoted=True) for name, each in self.items.values()]
        for part in ("order", "limit", "offset", "distinct", "qualify", "windows"):
            select.set(part, None)
        select.set("expressions", made)
        return select

    def _outer(self) -> Node:
        known, node = expressions(), self.node
        items = []
        for each in node.expressions:
            if each.find(known.Star) and not each.find(known.Count):
                refuse(each, "beside window functions there is no star")
            name = shown_name(each)
            items.append(known.alias_(self._made(each.unalias()), name, quoted=True))
        select = known.Select(expressions=items)
        select.set("from_", known.From(this=known.Table(this=known.to_identifier(self.alias, quoted=True))))
        names = {shown_name(each).lower() for each in node.expressions}
        order, qualify = node.args.get("order"), node.args.get("qualify")
        if qualify is not None:
            select.set("where", known.Where(this=self._made(qualify.this, names)))
        if order is not None:
            made = [
                known.Ordered(
                    this=self._made(each.this, names),
                    desc=each.args.get("desc"),
                    nulls_first=each.args.get("nulls_first"),
                )
                for each in order.expressions
            ]
            select.set("order", known.Order(expressions=made))
        for part in ("limit", "offset", "distinct"):
            given = node.args.get(part)
            if given is not None and given.args.get("on"):
                refuse(given, "DISTINCT ON beside window functions is not covered here")
            select.set(part, None if given is None else given.copy())
        return select

    def _made(self, node: Node, names: Sequence[str] | set[str] = ()) -> Node:
        """An expression over what the inner SELECT gives, and window functions. `names`: those of results."""
        known = expressions()
        if kind_of(node) == "Window":
            return known.column(self._function(node), table=self.alias, quoted=True)
        if not node.find(known.Window):
            is_name = kind_of(node) == "Column" and not node.table and node.name.lower() in names
            if is_name or not (any(columns_in(node)) or any(aggregates_in(node)) or node.find(known.Query)):
                return node.copy()
            return known.column(self._item(node), table=self.alias, quoted=True)
        made = node.copy()
        for part, value in node.args.items():
            if isinstance(value, list):
                parts = [
                    self._made(each, names) if isinstance(each, known.Expression) else each for each in value
                ]
                made.set(part, parts)
            elif isinstance(value, known.Expression):
                made.set(part, self._made(value, names))
        return made

    def _item(self, node: Node) -> str:
        text = str(node.sql(dialect="duckdb"))
        if text not in self.items:
            self.items[text] = (f"item {len(self.items)}", node)
        return self.items[text][0]

    def _function(self, node: Node) -> str:
        """The name of a window function's column."""
        window, named = node, node.args.get("alias")
        if named is not None:
            is_more = node.args.get("order") or node.args.get("partition_by")
            if is_more or named.name.lower() not in self.named:
                refuse(node, "a named window stands as it is, and behind WINDOW")
            window = self.named[named.name.lower()]
        for part, value in node.args.items():
            if value and part not in PARTS:
                refuse(node, f"{part.upper()} of a window is not covered here")
        kind = FUNCTIONS.get(kind_of(node.this))
        if kind is None:
            refuse(node.this, f"{CALLED} is not covered over a window")
        args, number = self._args(node, kind)
        order = window.args.get("order")
        ordered = [] if order is None else order.expressions
        found = WindowFunction(
            kind,
            tuple(map(self._item, args)),
            tuple(self._item(each) for each in window.args.get("partition_by") or ()),
            tuple(
                (self._item(each.this), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
                for each in ordered
            ),
            _frame(window),
            number,
        )
        same = next((name for name, each in self.functions.items() if each == found), None)
        name = same or f"window {len(self.functions)}"
        self.functions[name] = found
        return name

    def _args(self, node: Node, kind: str) -> tuple[list[Node], int]:
        """Of which expressions it is, and the number that it has."""
        of = node.this
        if kind in AGGREGATES:
            if kind_of(of.this) == "Distinct":
                refuse(node, "DISTINCT over a window is not covered here")
            check_one_argument(of)
            return ([] if of.this is None or kind_of(of.this) == "Star" else [of.this]), 1
        given = {"ntile": of.this, "nth_value": of.args.get("offset")}.get(kind, of.args.get("offset"))
        number = 1
        if given is not None:
            is_number = kind_of(given) == "Literal" and str(given.this).isdigit()
            if not is_number or (kind in ("ntile", "nth_value") and int(given.this) == 0):
                refuse(node, "its number is a whole one that is written down")
            number = int(given.this)
        args = [] if kind == "ntile" or of.this is None else [of.this]
        default = of.args.get("default")
        return ([*args, default] if default is not None else args), number


def _frame(window: Node) -> Frame:
    spec = window.args.get("spec")
    if spec is None:
        return Frame() if window.args.get("order") else WHOLE
    kind, given = str(spec.args.get("kind")).upper(), spec.args
    if spec.args.get("exclude") or kind not in ("ROWS", "RANGE"):
        refuse(window, f"a frame of {kind} or with EXCLUDE is not covered here")
    first = _bound(window, given.get("start"), given.get("start_side"))
    last = _bound(window, given.get("end") or "CURRENT ROW", given.get("end_side"))
    if kind == "RANGE" and {first, last} - {None, 0}:
        refuse(window, "a RANGE begins and ends with CURRENT ROW, or is UNBOUNDED")
    return Frame(first, last, kind == "RANGE")


def _bound(window: Node, given: Node | str, side: str | None) -> int | None:
    if isinstance(given, str):
        return None if given.upper() == "UNBOUNDED" else 0
    if kind_of(given) != "Literal" or not str(given.this).isdigit():
        refuse(window, "a frame is so many rows as are written down")
    return -int(given.this) if str(side).upper() == "PRECEDING" else int(given.this)
