"""SQL over tables: one statement at a time, in DuckDB's dialect, read by sqlglot, run as queries.

The largest table that is named is scanned; the others are joined with it (`Query.join`), those conditions
that are about one of them alone met before. ORDER BY and LIMIT are done with the result. What the engine has
not is made in memory, of results of parts of the statement: pairs of rows (`statement_pairs`), window
functions (`statement_windows`), sets of keys (`statement_grouping_sets`). A plan is kept (`prepared`).
"""

from __future__ import annotations

import datetime
import logging
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.columns.joining import KeyTypeError, RepeatedKeyError
from penstock.columns.other_tables import Columns, ResultColumns
from penstock.columns.prepared import Prepared, Runnable, close_all, prepared_plans, result_of
from penstock.columns.results import Result
from penstock.columns.statement_grouping_sets import by_sets, has_sets
from penstock.columns.statement_names import called, files_of, name_of, renamed
from penstock.columns.statement_nodes import (
    Node,
    NotCoveredError,
    check_parts,
    conjuncts,
    kind_of,
    refuse,
    sentence,
)
from penstock.columns.statement_pairs import Pairs, chain
from penstock.columns.statement_rewriting import (
    OUTER,
    columns_of_tables,
    other_way_round,
    with_merged_subquery,
)
from penstock.columns.statement_select import Ordering, Plan, Select
from penstock.columns.statement_sets import SetPlan
from penstock.columns.statement_short_forms import rows_selected, with_aliases, written_out
from penstock.columns.statement_sources import MixedConditionError, Sources
from penstock.columns.statement_subqueries import Subqueries
from penstock.columns.statement_tables import Source, check_usable, used
from penstock.columns.statement_windows import WindowPlan, Windows, has_windows, with_results_named
from penstock.columns.table import Table, open_table
from penstock.columns.table_options import TableOptions

PARTS_OF_SELECT = {
    "kind", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "distinct", "with_", "operation_modifiers",
}  # fmt: skip
FUNCTION = "what stands behind FROM is a table, a subquery, READ_PARQUET or a file in quotes here"
SETS = {"Union": "UNION", "Except": "EXCEPT", "Intersect": "INTERSECT"}
PARTS_OF_SETS = {"this", "expression", "distinct", "order", "limit", "offset", "with_"}
HOWS: dict[str, Any] = {
    "": "inner", "INNER": "inner", "LEFT": "left", "LEFT OUTER": "left",
    "RIGHT": "right", "RIGHT OUTER": "right", "FULL": "full", "FULL OUTER": "full",
    "CROSS": "inner", "SEMI": "semi", "LEFT SEMI": "semi", "ANTI": "anti", "LEFT ANTI": "anti",
}  # fmt: skip


def sql(statement: str, /, **tables: Any) -> Result:
    """Run one statement: a SELECT, or several with UNION, EXCEPT or INTERSECT between them.

    Covered: expressions of columns (arithmetic, comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS NULL,
    CASE, COALESCE, casts, functions of texts, dates and times), SUM, AVG, MIN, MAX, COUNT, with DISTINCT too,
    VARIANCE and STDDEV, FILTER, window functions, GROUP BY, with ROLLUP, CUBE and GROUPING SETS too, HAVING,
    ORDER BY, LIMIT, DISTINCT; joins by equal keys, ON or USING, LEFT, RIGHT, FULL, SEMI and ANTI too;
    subqueries behind FROM, WITH, IN and EXISTS and as values, also correlated by equal keys. Joins whose
    tables both have a key more than once, and window functions, are made in the host's memory.

    Args:
        statement: In DuckDB's dialect. A table in quotes that no name stands for is a file or folder, as in
            FROM 'trips.parquet'; its columns are called trips.zone. It is closed when the statement has run.
            So are what lies on a volume, FROM 'volume:trips@a.img,b.img', and several Parquet files together,
            FROM '2024/*.parquet' or read_parquet(['a.parquet', 'b.parquet']).
        **tables: What the names in it stand for: a `Table`, a result, or what `open_table` takes. Options
            such as executor go to `open_table`, whose table is given here then.

    Returns:
        The result; `print` it, or take it to Arrow, pandas or Polars.

    Raises:
        ValueError: What is not covered, by name; a statement that is none; a file that is no table.
        KeyError: A table or column that there is not.
        TypeError: An option of `open_table`.
        ImportError: sqlglot is not installed.
    """
    _check_text(statement)
    known = prepared_plans.take(statement, tables)
    if known is None or not known.is_current():
        weak = {n: weakref.proxy(each) if isinstance(each, Table) else each for n, each in tables.items()}
        known = prepared(statement, weak)
    with closing(known):
        result = result_of(known.plan)
        prepared_plans.give(statement, tables, known)
    return result


def prepared(
    statement: str, tables: Mapping[str, Any], opened: Callable[[Any], Table] = open_table
) -> Prepared:
    """The plan of a statement, whose subqueries have run. `opened` opens what is no table yet."""
    try:
        import sqlglot
    except ImportError:
        raise ImportError("sql: it needs sqlglot: pip install 'penstock[sql]'") from None
    _check_text(statement)
    day = datetime.date.today()
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it would log is raised below
    try:
        parsed = sqlglot.parse(statement, dialect="duckdb")
        if len(parsed) != 1 or parsed[0] is None:
            count = sum(each is not None for each in parsed)
            raise ValueError(
                f"sql: there {'is no statement' if not count else f'are {count} statements'}: give one"
            )
        for node in parsed[0].walk():
            if node.error_messages():  # the parser lets some by
                refuse(node, "something is missing in it")
        _check_tables(tables, parsed[0])
        shared = _Shared(opened)
        with ExitStack() as failed:
            failed.callback(close_all, shared.tables)
            planner = _Planner({name.lower(): each for name, each in tables.items()}, shared)
            made = Prepared(planner.plan(parsed[0]), shared.subqueries, day, opened=shared.tables)
            failed.pop_all()
        return made
    except NotCoveredError as problem:
        raise ValueError(sentence(problem.node, problem.why, statement)) from None
    except sqlglot.errors.ParseError as problem:
        at = problem.errors[0] if problem.errors else {}
        why = str(at.get("description") or problem).splitlines()[0].partition(" but got <Token")[0]
        why = "something is missing here" if why.startswith("Required keyword") else why
        raise ValueError(f"sql: line {at.get('line', 1)}, column {at.get('col', 1)}: {why}") from None
    except sqlglot.errors.SqlglotError as problem:
        raise ValueError(f"sql: {str(problem).splitlines()[0]}") from None
    except (RepeatedKeyError, KeyTypeError) as problem:
        kind = ValueError if isinstance(problem, ValueError) else TypeError
        remedy = "join by another key, or give the tables to DuckDB, which reads columns whole"
        raise kind(f"sql: {problem.what}: {remedy}") from None
    except RecursionError:
        raise ValueError("sql: the statement is nested too deep: make it two, or use IN") from None


def _check_text(statement: Any) -> None:
    if not isinstance(statement, str):
        raise TypeError(f"sql: a statement is a text, not {type(statement).__name__}")


def _check_tables(tables: Mapping[str, Any], statement: Node) -> None:
    """Refuses what is called as an option of open_table, and is no table of the statement."""
    named = {node.name.lower() for node in statement.walk() if kind_of(node) == "Table"}
    for name, given in tables.items():
        if name in TableOptions.__annotations__ and name not in named and not isinstance(given, Table):
            raise TypeError(
                f"sql: {name}= would be a table, and the statement names none that is called so: options go "
                f"to open_table: open a table with it, as in t=open_table('trips.parquet', {name}=...), and "
                "give that"
            )


@dataclass
class _Shared:
    """What the planners of a statement and of its subqueries have together."""

    open: Callable[[Any], Table]
    tables: list[Table] = field(default_factory=list)
    """That were opened for the statement."""
    known: dict[str | tuple[str, ...] | int, tuple[Any, Table]] = field(default_factory=dict)
    """These, and what they are of: files by their names in the statement, what was given by its id."""
    subqueries: list[tuple[Runnable, Result]] = field(default_factory=list)
    """Those that have run."""

    def table(self, key: str | tuple[str, ...] | int, source: Any) -> Table:
        if key not in self.known:
            self.tables.append(self.open(source))
            self.known[key] = (source, self.tables[-1])
        return self.known[key][1]


class _Planner:
    def __init__(self, tables: dict[str, Any], shared: _Shared) -> None:
        self.tables = tables
        self.shared = shared
        self.answers: dict[int, tuple[Node, Result]] = {}
        """Of subqueries, by their nodes, which are kept."""
        self.derived: dict[int, tuple[Node, Table]] = {}

    def plan(self, node: Node) -> Plan | SetPlan:
        while kind_of(node) == "Subquery" and not any(
            value for part, value in node.args.items() if part != "this"
        ):
            node = node.this
        if kind_of(node) == "Values":
            node = rows_selected(node)
        if kind_of(node) == "Table":
            refuse(node, "JOIN in brackets is not covered here")
        if kind_of(node) not in (*SETS, "Select"):
            refuse(node, f"{node.sql(dialect='duckdb').split()[0].upper()} is not covered here, SELECT is")
        with_ = node.args.get("with_")
        if with_ is not None:
            rest = node.copy()
            rest.set("with_", None)
            return self._with(with_).plan_without(rest)
        return self.plan_without(node)

    def _with(self, node: Node) -> _Planner:
        check_parts(node, {"expressions"})
        tables = self.tables
        for each in node.expressions:
            check_parts(each, {"this", "alias", "materialized"})  # each is computed once
            result = self._run(_Planner(tables, self.shared).plan(each.this))
            opened = open_table(called(each, result, renamed(each)), executor="auto")
            tables = {**tables, each.alias.lower(): opened}
        return _Planner(tables, self.shared)

    def _run(self, plan: Runnable) -> Result:
        result = result_of(plan)
        self.shared.subqueries.append((plan, result))
        return result

    def plan_without(self, node: Node) -> Plan | SetPlan:
        """What is behind WITH."""
        if kind_of(node) in SETS:
            return self._sets(node)
        if not node.expressions:
            refuse(node, "it selects nothing: name columns, or *")
        check_parts(node, PARTS_OF_SELECT | ({"qualify", "windows"} if has_windows(node) else set()))
        written = written_out(node.copy())
        if has_windows(written):
            return self._of_windows(written)
        if has_sets(written):
            return self.plan_without(by_sets(written, self.names(written)))
        joins = written.args.get("joins") or ()
        outer = next((k for k, join in enumerate(joins) if join.side in OUTER), None)
        if outer is not None:
            sources = self._sources(written)
            return self._of_pairs(written, sources, chain(sources, outer + 1), sources[outer + 1])
        try:
            return self._select(with_merged_subquery(written.copy()))
        except RepeatedKeyError as problem:
            return self._of_many(written, problem)
        except MixedConditionError as problem:
            if problem.source.how != "left":
                raise
            if not joins:
                return self._select(written)  # of a subquery, which has that join
            sources = self._sources(written)
            number = next(k for k, source in enumerate(sources) if source.alias == problem.source.alias)
            return self._of_pairs(written, sources, chain(sources, number), sources[number])

    def _select(self, node: Node) -> Plan:
        sources = self._sources(node)
        with_aliases(node, sources)
        subqueries = Subqueries(self, sources)
        where = node.args.get("where")
        conditions = subqueries.conditions(None if where is None else where.this)
        for part in ("expressions", "group", "order"):
            given = node.args.get(part)
            if given:
                of = given if part == "expressions" else given.expressions
                made = [(subqueries.selected if of is given else subqueries.replaced)(each) for each in of]
                (node if part == "expressions" else given).set("expressions", made)
        subqueries.check_having(node.args.get("having"))
        return Select(node, Sources(sources, self.result), conditions).plan()

    def _of_many(self, node: Node, problem: RepeatedKeyError) -> Plan | SetPlan:
        """A SELECT in which rows of a table meet more than one of another's."""
        if not node.args.get("joins"):
            return self._select(node)  # of a subquery, which has that join
        sources = self._sources(node)
        turned = other_way_round(node, sources)
        if turned is not None:
            return self.plan_without(turned)
        if problem.tables is None:
            raise problem
        before, alias = problem.tables
        *first, second = [source for source in sources if source.alias in {*before, alias}]
        if len(first) != 1 or any(source.how != "inner" for source in (*first, second)):
            first = chain(sources, sources.index(second))
        if not first:
            raise problem
        return self._of_pairs(node, sources, first, second)

    def _of_windows(self, node: Node) -> Plan | SetPlan:
        alias = f"windows {len(self.tables)}"
        windows = Windows(with_results_named(node, set().union(*self.names(node).values())), alias)
        rows = self.plan_without(windows.inner())
        result = self._run(WindowPlan(rows, windows.functions))
        tables = {**self.tables, alias: open_table(result, executor="auto")}
        return _Planner(tables, self.shared).plan_without(windows.outer)

    def _of_pairs(
        self, node: Node, sources: list[Source], first: list[Source], second: Source
    ) -> Plan | SetPlan:
        for column in columns_of_tables(node):
            check_usable(column, sources)
        alias = f"pairs {len(self.tables)}"
        pairs = Pairs(node, sources, first, second, alias)
        result = self._run(pairs.plan(self))
        tables = {**self.tables, alias: open_table(result, executor="auto")}
        return _Planner(tables, self.shared).plan_without(pairs.statement())

    def _sets(self, node: Node) -> SetPlan:
        what = SETS[kind_of(node)]
        check_parts(node, PARTS_OF_SETS)
        every = not node.args.get("distinct")
        first, second = self.plan(node.this), self.plan(node.expression)
        return SetPlan(what, every, first, second, Ordering.of_names(node))

    # What subqueries need: Runner.

    def result(self, node: Node) -> Result:
        if id(node) not in self.answers:
            self.answers[id(node)] = (node, self._run(_Planner(self.tables, self.shared).plan(node)))
        return self.answers[id(node)][1]

    def columns(self, node: Node) -> Columns:
        plan = _Planner(self.tables, self.shared).plan(node)
        rows = plan.by_row() if isinstance(plan, Plan) else None
        return ResultColumns(self._run(plan).columns) if rows is None else rows.join_columns()

    def names(self, select: Node) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        joins = [join.this for join in select.args.get("joins") or ()]
        for each in [*([select.args["from_"].this] if select.args.get("from_") else []), *joins]:
            alias, table = self._table(each)
            found[alias] = {name.lower() for name in table.columns}
        return found

    def _sources(self, node: Node) -> list[Source]:
        first = node.args.get("from_")
        if first is None:
            return [Source("", open_table({"row": np.zeros(1, np.int64)}, executor="cpu"), node)]
        found = [Source(*self._table(first.this), first.this)]
        for join in node.args.get("joins") or ():
            how = f"{join.args.get('side') or ''} {join.args.get('kind') or ''}".strip().upper()
            if how not in HOWS or set(join.args) - {"this", "side", "kind", "on", "using"} & {
                part for part, value in join.args.items() if value
            }:
                refuse(join, "joins are INNER, LEFT, RIGHT, FULL, SEMI or ANTI, with ON or USING")
            source = Source(*self._table(join.this), join, HOWS[how])
            source.on = conjuncts(join.args.get("on"))
            for name in join.args.get("using") or ():
                source.on.append(used(name, source, found))
                source.using.add(name.name.lower())
            found.append(source)
        names = [source.alias for source in found]
        for name in names:
            if names.count(name) > 1:
                refuse(node, f"two tables are called {name}")
        return found

    def _table(self, node: Node) -> tuple[str, Table]:
        files = files_of(node, self.tables)
        is_named = kind_of(node) == "Table" and kind_of(node.this) == "Identifier"
        if files is None and not is_named and kind_of(node) not in ("Subquery", "Values"):
            refuse(node, FUNCTION)
        name = name_of(node, files)
        if node.args.get("db"):
            refuse(node, "the name of a table has one part, and a file stands in quotes")
        is_values = kind_of(node) == "Values"
        check_parts(node, {"this", "alias", "expressions"} if is_values else {"this", "alias"})
        columns = renamed(node)
        if kind_of(node) == "Subquery" or is_values:
            if id(node) not in self.derived:
                result = self._run(_Planner(self.tables, self.shared).plan(node if is_values else node.this))
                self.derived[id(node)] = (node, open_table(called(node, result, columns), executor="auto"))
            return name, self.derived[id(node)][1]
        if columns:
            refuse(node, "an alias with names of columns is covered behind subqueries only")
        if files is not None:
            return name, self.shared.table(files, files)
        key = node.name.lower()
        if key not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise KeyError(
                f"sql: there is no table {node.sql(dialect='duckdb')!r}: given are {known}; write a file in "
                "quotes, FROM 'trips.parquet'"
            )
        given = self.tables[key]
        return name, given if isinstance(given, Table) else self.shared.table(id(given), given)
