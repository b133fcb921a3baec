"""Random statements: penstock.sql's answers are DuckDB's."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.columns import Table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")


WHOLE = ["t.zone", "t.zone_n"]
TEXTS = ["t.word", "z.borough"]
SETS = ["union", "except", "intersect"]


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2, joined: bool = False) -> str:
    """A whole number of a row; small ones, so that products fit."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        names = ["t.zone", "t.zone_n", *(["z.miles", "z.zone"] if joined else [])]
        return draw(st.sampled_from([*names, str(draw(st.integers(0, 9)))]))
    a = draw(numbers(depth - 1, joined))
    match draw(st.integers(0, 15)):
        case 0 | 1 | 2:
            return f"({a} {draw(st.sampled_from('+-*'))} {draw(numbers(depth - 1, joined))})"
        case 14:
            return f"({a} {draw(st.sampled_from('&|'))} {draw(numbers(depth - 1, joined))})"
        case 15:
            return f"xor({a}, {draw(numbers(depth - 1, joined))}) >> {draw(st.integers(0, 5))}"
        case 3:
            return f"({a} % {draw(st.integers(1, 9))})"
        case 4:
            return f"({a} // {draw(st.integers(1, 9))})"
        case 5:
            return f"coalesce({a}, {draw(numbers(depth - 1, joined))})"
        case 6:
            then, other = draw(numbers(depth - 1, joined)), draw(numbers(depth - 1, joined))
            return f"case when {draw(conditions(depth - 1, joined))} then {then} else {other} end"
        case 7:
            return f"abs({a})"
        case 8:
            part = draw(st.sampled_from(["year", "month", "day", "week", "quarter", "isodow", "doy"]))
            return f"extract({part} from {draw(days())})"
        case 9:
            return f"length({draw(texts(depth - 1, joined))})"
        case 10:
            return f"greatest({a}, {draw(numbers(depth - 1, joined))})"
        case 11:
            return f"cast(t.miles * {draw(st.integers(1, 30))} as bigint)"
        case 12:
            return f"try_cast({draw(texts(depth - 1, joined))} as integer)"
        case _:
            return f"nullif({a}, {draw(st.integers(0, 5))})"


@st.composite
def days(draw: st.DrawFn) -> str:
    number, unit = draw(st.integers(0, 40)), draw(st.sampled_from(["day", "week", "month", "year"]))
    sign = draw(st.sampled_from("+-"))
    return draw(st.sampled_from(["t.day", f"(t.day {sign} interval {number} {unit})"]))


@st.composite
def texts(draw: st.DrawFn, depth: int = 1, joined: bool = False) -> str:
    name = draw(st.sampled_from(TEXTS if joined else TEXTS[:1]))
    if depth <= 0:
        return name
    of = draw(texts(depth - 1, joined))
    count = draw(st.integers(-3, 3))
    return draw(
        st.sampled_from(
            [
                of, f"upper({of})", f"left({of}, {count})", f"right({of}, {count})", f"({of} || 'z')",
                f"substring({of}, {count}, 2)", f"replace({of}, 'z', 'ab')", f"coalesce({of}, 'none')",
                f"case when {draw(conditions(0, joined))} then {of} else {name} end", f"reverse({of})",
                f"cast({draw(numbers(0, joined))} as varchar)", f"lpad({of}, {abs(count)}, '0')",
            ]
        )
    )  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2, joined: bool = False) -> str:
    match draw(st.integers(0, 13 if depth else 4)):
        case 0:
            return draw(st.sampled_from(["t.flag", "t.zone_n is null", "t.day > date '2024-01-20'"]))
        case 1:
            return f"t.miles {draw(st.sampled_from(['<', '>=']))} {draw(st.integers(0, 100))} / 100.0"
        case 2:
            names = ", ".join(f"'{word}'" for word in draw(st.lists(st.sampled_from("abz"), min_size=1)))
            return f"t.word {draw(st.sampled_from(['in', 'not in']))} ({names})"
        case 3:
            how = draw(st.sampled_from(["like", "not like", "ilike"]))
            return f"{draw(texts(0, joined))} {how} '%{draw(st.sampled_from(['a', '_z', '1']))}'"
        case 4:
            low, high = draw(st.integers(0, 99)), draw(st.integers(50, 300))
            return f"{draw(st.sampled_from(WHOLE))} between {low} and {high}"
        case 5 | 6:
            a, b = draw(conditions(depth - 1, joined)), draw(conditions(depth - 1, joined))
            return f"({a} {draw(st.sampled_from(['and', 'or']))} {b})"
        case 7:
            return f"not ({draw(conditions(depth - 1, joined))})"
        case 8 | 9:
            compared = draw(st.sampled_from(["<", "<=", "=", "<>", ">", ">="]))
            return f"{draw(numbers(depth - 1, joined))} {compared} {draw(numbers(depth - 1, joined))}"
        case 10:
            compared = draw(st.sampled_from(["<", "=", "<>", ">="]))
            return f"{draw(texts(depth - 1, joined))} {compared} {draw(texts(depth - 1, joined))}"
        case 11:
            return draw(subconditions())
        case 12:
            return f"({draw(conditions(depth - 1, joined))}) is {draw(st.sampled_from(['', 'not ']))}null"
        case _:
            return f"{draw(days())} < {draw(days())}"


@st.composite
def subconditions(draw: st.DrawFn) -> str:
    """With a subquery."""
    inside = f"u.miles < {draw(st.integers(0, 100))} / 100.0 and u.zone_n > {draw(st.integers(-1, 250))}"
    is_not = draw(st.sampled_from(["", "not "]))
    keys = ["u.zone = t.zone", "u.zone_n = t.zone_n and u.word = t.word", "u.day = t.day"]
    key = draw(st.sampled_from(keys))
    other = draw(st.sampled_from(["", " and u.word <> t.word", " and u.miles > t.miles"]))
    aggregate = draw(st.sampled_from(["avg(u.miles)", "count(*)", "max(u.miles) * 0.5"]))
    made = [
        f"{is_not}exists (select 1 from trips u where {inside} and {key}{other})",
        f"t.zone_n {is_not}in (select u.zone from trips u where {inside})",
        f"t.zone_n {is_not}in (select u.zone_n from trips u where u.miles < 0.12)",
        f"t.zone_n {is_not}in (select u.zone_n from trips u where {inside} and u.day = t.day)",
        f"t.zone {is_not}in (select max(u.zone) from trips u where {inside} and {key})",
        f"t.miles < (select {aggregate} from trips u where {inside} and {key})",
        f"t.miles > (select avg(u.miles) from trips u where {inside})",
        f"{is_not}exists (select 1 from zones u where u.miles > {draw(st.integers(150, 250))})",
    ]
    return draw(st.sampled_from(made))


@st.composite
def aggregates(draw: st.DrawFn, joined: bool = False) -> str:
    of = draw(numbers(1, joined))
    kinds = ["sum", "min", "max", "count", "avg", "distinct", "texts", "stddev", "rows"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "texts":
            made = f"{draw(st.sampled_from(['min', 'max']))}({draw(texts(1, joined))})"
        case "rows":
            made = "count(*)"
        case "distinct":
            made = f"{draw(st.sampled_from(['count', 'sum', 'avg']))}(distinct {of})"
        case "stddev":
            made = f"stddev({draw(st.sampled_from([*WHOLE, 't.miles']))})"
        case _:
            made = f"{kind}({of})"
    if draw(st.integers(0, 3)) == 0:
        made += f" filter (where {draw(conditions(1, joined))})"
    wrap = draw(st.sampled_from(["{}", "{}", "{}", "coalesce({}, {})"]))
    return wrap.format(made, "'none'" if kind == "texts" else "0")


@st.composite
def windows(draw: st.DrawFn) -> str:
    of = draw(numbers(1))
    some = ["rank()", "dense_rank()", f"sum({of})", f"min({of})", f"max({draw(texts(1))})", f"count({of})"]
    part = draw(st.sampled_from(["", "partition by t.word ", "partition by t.flag, t.zone "]))
    order = draw(st.sampled_from(["t.miles, t.zone", "t.day desc, t.word", "t.zone_n nulls first"]))
    last = draw(st.sampled_from(["", " range between current row and unbounded following"]))
    return f"{draw(st.sampled_from(some))} over ({part}order by {order}{last})"


@st.composite
def statements(draw: st.DrawFn) -> str:
    joined = draw(st.booleans())
    kind = draw(st.sampled_from(["join", "left join", "right join", "full join"]))
    on = draw(st.sampled_from(["t.zone = z.zone", "t.zone = z.zone and t.miles * 200 < z.miles"]))
    tables = f"trips t {kind} zones z on {on}" if joined else "trips t"
    where = f" where {draw(conditions(2, joined))}" if draw(st.integers(0, 4)) else ""
    values = st.one_of(numbers(2, joined), texts(2, joined))
    match draw(st.integers(0, 5)):
        case 5:
            made = [draw(numbers(1)), draw(windows())]
            return f"select {', '.join(made)} from {tables}{where}"
        case 0 | 1:
            made = draw(st.lists(values, min_size=1, max_size=3))
            return f"select {', '.join(made)} from {tables}{where}"
        case 2:
            made = draw(st.lists(aggregates(joined), min_size=1, max_size=3))
            return f"select {', '.join(made)} from {tables}{where}"
        case 3:
            keys = draw(st.lists(values, min_size=1, max_size=2))
            made = draw(st.lists(aggregates(joined), min_size=1, max_size=3))
            numbered = ", ".join(str(k + 1) for k in range(len(keys)))
            having = draw(st.sampled_from(["", " having count(*) > 3", " having max(t.miles) > 0.9"]))
            return f"select {', '.join([*keys, *made])} from {tables}{where} group by {numbered}{having}"
        case _:
            what = draw(st.sampled_from([f"{how}{every}" for how in SETS for every in ("", " all")]))
            first = f"select {draw(numbers(1, joined))} as a from {tables}{where}"
            return f"{first} {what} select {draw(numbers(1))} from trips t"


def same(mine: list[Any], theirs: list[Any]) -> bool:
    """The same rows in any order; floating-point numbers about."""
    if mine == theirs or Counter(mine) == Counter(
        theirs
    ):  # without the sorting, which takes longer than both queries
        return True

    def rounded(row: tuple[Any, ...]) -> list[str]:
        return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]

    def alike(a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
        return bool(a == b)

    pairs = zip(sorted(mine, key=rounded), sorted(theirs, key=rounded), strict=False)
    return len(mine) == len(theirs) and all(all(map(alike, a, b)) for a, b in pairs)


# PENSTOCK_COLUMN_QUERIES: how many.
@settings(
    max_examples=int(os.environ.get("PENSTOCK_COLUMN_QUERIES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(statement=statements())
def test_random_statements_have_duckdbs_answers(
    sql_tables: dict[str, Table], sql_peer: Any, statement: str
) -> None:
    expected = sql_peer.sql(statement).fetchall()
    try:
        found = sql(statement, **sql_tables).rows()
    except ValueError as refusal:
        whys = ("needs more than 32 values", "combinations", "no subquery in another clause")
        assert any(why in str(refusal) for why in whys), statement
        return
    assert same(found, expected), (statement, found[:3], expected[:3])
