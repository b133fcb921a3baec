"""Texts, dates, casts and names of penstock.sql beside DuckDB's, at the edges of their types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from penstock.columns import Table, open_table, sql
from places import DEVICES

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
duckdb: Any = pytest.importorskip("duckdb", reason="duckdb is not installed")

EDGES = pa.table(
    {
        "id": [1, 2, 3, 4],
        "s": ["abc", "Äöß", "日本", "a\nc"],
        "n": [127, -128, None, 5],
        "x": [1.25, -99.9, None, 0.005],
        "b": [True, False, None, True],
        "f": [float("nan"), -float("inf"), 0.0, 2.0],
        "t": ["12.345", "-0.005", None, "1e2"],
        "d": pa.array([dt.date(1970, 1, 1), dt.date(1970, 1, 2), None, dt.date(1969, 12, 31)]),
    }
)
PATTERNS = (
    r"\w\w\w", r"^\w+$", r"^\W+$", r"\bc", r"\S\s\S", r"\d", "[[:alpha:]]", "[^[:space:]]{3}", r"c\z",
    r"\p{L}{3}", r"\p{Han}", "a.c", "(?s)a.c", "(?m)^c", "(?i)äÖ", "[a-b&&c]", "ab|abc", "",
)  # fmt: skip
COVERED = [
    f"select id, {test} as m from edges order by id"
    for pattern in PATTERNS
    for test in (
        f"regexp_matches(s, '{pattern}')", f"regexp_full_match(s, '{pattern}')", f"s similar to '{pattern}'"
    )
]  # fmt: skip
COVERED += """
select id from edges where d < '1970-01-01 12:00:00' order by id;
select id from edges where d = '1970-01-01 12:00:00' order by id;
select id from edges where '1970-01-01 12:00:00' <= d order by id;
select id from edges where d in ('1970-01-01 12:00:00', '1970-01-02') order by id;
select id from edges where d between '1970-01-01 12:00:00' and '1970-01-01 13:00:00' order by id;
select id from edges where d < timestamp '1970-01-01 12:00:00' order by id;
select coalesce(d, '1970-01-01 12:00:00') as c, nullif(d, '1970-01-01 12:00:00') as n from edges order by id;
select cast(n as tinyint) as a, cast(n * 256 as smallint) as b, cast(n * 16777216 as integer) as c
    from edges order by id;
select cast(x as decimal(3,1)) as a, cast(n as decimal(4,1)) as b, cast(n as decimal(38,2)) as c
    from edges order by id;
select cast(x * 2.56 as smallint) as a, cast(-128 as tinyint) as b, cast('127' as tinyint) as c
    from edges order by id;
select cast(t as decimal(5,2)) as a, cast(t as decimal) as b, cast('1.25' as decimal(2,1)) as c
    from edges order by id;
select id from edges where cast(t as decimal(6,2)) > 12.34 order by id;
select b is true as a, b is false as b, b is not true as c, b is not false as d from edges order by id;
select id from edges where (n > 1) is not true order by id;
select b is distinct from true as a, b is not distinct from null as b, n is distinct from id as c, s is
    distinct from 'abc' as d, t is not distinct from null as e, n is distinct from null as f, nullif(n, 5) is
    not distinct from nullif(id, 4) as g from edges order by id;
select sign(x) as a, sign(f) as b, sign(n) as c from edges order by id;
select upper(s), sum(N), max(CAST(n AS BIGINT)) from edges group by upper(s) order by 1
""".strip().split(";\n")
REFUSED = {
    r"select regexp_matches(s, '(a)\1') from edges": r"the pattern is none: .*\\1",
    "select regexp_matches(s, 'a(?=b)') from edges": r"the pattern is none: .*\(\?=",
    "select s similar to 'a)|(b' from edges": "the pattern is none",
    "select cast(300 as tinyint) from edges": "does not fit 8 bits",
    "select d + interval '1 day 2 moons' from edges": "intervals are so many of DAY",
    "select d + interval 'soon' from edges": "intervals are so many of DAY",
    "select id from edges where n in (select s from edges)": "join on n: it is int64 here and string there",
    "select id from edges where d in (select n from edges)": "join on d: it is date.* here and int64 there",
    "select count(*) from edges e group by n having count(*) > (select count(*) from edges o where o.n = "
    "e.n)": "a subquery in HAVING",
    "select count(*) from edges group by n having n in (select id from edges)": "a subquery in HAVING",
    "select cast(x as real) from edges": "CAST to REAL is not covered",
}
OUTSIDE = (
    "n + 1 as tinyint", "n - 1 as tinyint", "n * 256 + 256 as smallint", "n * 16777217 as integer",
    "x * 100000000 as integer", "n as decimal(3,1)", "x as decimal(2,1)", "n - 872 as decimal(3,0)",
    "'300' as tinyint", "t as decimal(2,0)", "t as decimal(4,2)",
)  # fmt: skip


@pytest.fixture(params=DEVICES, scope="module")
def edges(request: pytest.FixtureRequest) -> Any:
    executor: Any = "cuda" if "cuda" in str(request.param) else "cpu"
    with open_table(EDGES, executor=executor) as made:
        yield made


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("statement", COVERED)
def test_answers_are_those_of_duckdb(edges: Table, statement: str) -> None:
    connection = duckdb.connect()
    connection.register("edges", EDGES)
    mine, theirs = sql(statement, edges=edges), connection.sql(statement)
    assert repr(mine.rows()) == repr(theirs.fetchall())
    assert list(mine) == theirs.columns


def test_columns_are_called_what_is_written(edges: Table) -> None:
    statement = """
        select replace(s, 'b', 'XX'), s || 'X', (select max(o.n) from edges o where o.id = e.id),
            (select 'A' from edges limit 1), exists (select 1 from edges o where o.id = e.id)
        from edges e
    """
    assert list(sql(statement, edges=edges)) == [
        "replace(s, 'b', 'XX')",
        "s || 'X'",
        "(SELECT max(o.n) FROM edges AS o WHERE o.id = e.id)",
        "(SELECT 'A' FROM edges LIMIT 1)",
        "EXISTS(SELECT 1 FROM edges AS o WHERE o.id = e.id)",
    ]


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_covered_is_refused_by_name(edges: Table, statement: str) -> None:
    with pytest.raises(
        (ValueError, TypeError, OverflowError), match="^sql: .*" + REFUSED[statement]
    ) as refusal:
        sql(statement, edges=edges)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("cast", OUTSIDE)
def test_casts_of_what_does_not_fit_fail(edges: Table, cast: str) -> None:
    connection = duckdb.connect()
    connection.register("edges", EDGES)
    statement = f"select cast({cast}) as c from edges"
    with pytest.raises(duckdb.ConversionException):
        connection.sql(statement).fetchall()
    with pytest.raises(OverflowError, match="beyond"):
        sql(statement, edges=edges)


@pytest.mark.parametrize("value", ["n << 62", "n << 64", "-n << 1", "(n + 127) << -1", "id << 63", "5 << 62"])
def test_bits_that_are_shifted_out_are_an_error(edges: Table, value: str) -> None:
    connection = duckdb.connect()
    connection.register("edges", EDGES)
    statement = f"select cast({value} as bigint) as c from edges where n = 127"
    with pytest.raises(duckdb.OutOfRangeException):
        connection.sql(statement).fetchall()
    with pytest.raises(OverflowError, match="beyond"):
        sql(statement, edges=edges)


@pytest.mark.parametrize("value", ["x & 1", "f | 1", "b << 1", "xor(d, 1)", "~x", "s >> 1"])
def test_bits_are_those_of_integers(edges: Table, value: str) -> None:
    with pytest.raises(TypeError, match=r"do not go together|cast it to a signed integer"):
        sql(f"select {value} from edges", edges=edges)


def test_columns_that_are_left_out_say_why_and_may_be_excluded() -> None:
    kinds = pa.table({"id": [1, 2], "Parts": [[1], [2, 3]]})
    with pytest.warns(UserWarning, match="1 column is left out: 'Parts'"):
        table = open_table(kinds, executor="cpu")
    with table:
        with pytest.raises(KeyError, match=r"sql: column 't\.parts' cannot be used: it is list<item"):
            sql("select t.parts from t", t=table)
        assert sql("select * exclude (parts) from t", t=table).rows() == [(1,), (2,)]
        with pytest.raises(KeyError, match="there is no column 'other'"):
            sql("select * exclude (other) from t", t=table)


@pytest.mark.parametrize(
    "statement",
    [
        "select a.* from a join b on b.other = a.k",
        "select a.* from a left join b on b.other = a.k",
        "select * from a semi join b on a.k = b.other",
        "select * from a, b where a.k = b.other",
    ],
)
def test_a_key_of_a_join_that_is_no_column_is_named(statement: str) -> None:
    with (
        open_table(pa.table({"k": [1]}), executor="cpu") as a,
        open_table(pa.table({"x": [1]}), executor="cpu") as b,
        pytest.raises(KeyError, match=r"sql: there is no column 'b\.other': there are x"),
    ):
        sql(statement, a=a, b=b)


def test_times_with_zones_are_written_with_theirs() -> None:
    time = dt.datetime(2024, 7, 1, 3, 30, tzinfo=dt.timezone.utc)
    table = pa.table({"t": pa.array([time], pa.timestamp("us", "Europe/Berlin"))})
    with open_table(table, executor="cpu") as t:
        for written in ("'2024-07-01 05:30:00+02'", "timestamptz '2024-07-01 03:30:00Z'"):
            assert sql(f"select count(*) from t where t = {written}", t=t).item() == 1
        with pytest.raises(TypeError, match=r"give it a zone \(tzinfo; in SQL '2024-07-01 03:30:00\+00'\)"):
            sql("select count(*) from t where t = timestamp '2024-07-01 03:30:00'", t=t)
        with pytest.raises(ValueError, match=r"it has no zone, as '2024-07-01 03:30:00\+00' has"):
            sql("select count(*) from t where t = timestamptz '2024-07-01 03:30:00'", t=t)


def test_a_date_that_its_type_does_not_have_is_no_other_date(edges: Table) -> None:
    found = sql("select d + 4294967296 as far from edges where id = 1", edges=edges)
    with pytest.raises(OverflowError, match=r"column 'far': a date is more than 2\^31 days from 1970"):
        found.rows()
