"""penstock.sql: statements beside DuckDB's answers, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from penstock.cli.main import penstock
from penstock.columns import Table, open_table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from sql_peers import comparable
from test_columns_joins import trips, zones

COVERED = """
select count(*), sum(miles) as m, avg(miles), min(day), max(zone) from trips;
select word, count(*) n, sum(zone) from trips where miles > 0.5 group by word order by n desc;
select word, flag, avg(miles)*2 as x from trips group by 1, 2 having count(*) > 100 and x > 0.5
    order by word, flag desc;
select zone, word from trips t where t.flag and not t.word = 'a' and zone_n is null;
select t.zone, z.borough, t.miles from trips t, zones z where t.zone = z.zone and z.area > 150 and
    t.miles between 0.2 and 0.3 order by t.miles limit 10;
select borough, count(*) as n, sum(area) from trips join zones on trips.zone = zones.zone where
    extract(day from day) in (3, 5) group by borough order by 1 nulls first;
select * from trips where zone = 7 and word like 'z%' order by miles desc limit 3 offset 1;
select count(*) from trips left join zones on trips.zone = zones.zone where zones.zone is null;
select count(*), count(borough) from trips left join zones on zones.zone = trips.zone and zones.area
    > 20 where trips.miles > 0.3;
select sum(miles), count(*), avg(zone) from trips where zone > 1000;
select case when zone < 10 then 0 when zone < 100 then 1 else 2 end as band, count(*) from trips
    group by band order by band;
select case word when 'a' then 1 when 'b' then 2 end as code, count(*) from trips group by 1 order
    by 1;
select zone % 7 as r, (zone - 150) // 7 as q, (zone - 150) % 7 as s, -zone as n, abs(zone - 150)
    from trips order by miles limit 20;
select distinct word, flag from trips order by word, flag;
select count(*) from trips where zone in (select zone from zones where area > 100) and word <> 'a';
with big as (select zone, count(*) as n from trips group by zone) select sum(n), count(*) from big
    where n > 70;
select max(n) from (select zone, count(*) as n from trips group by zone) b;
select year(day) * 100 + month(day) as ym, count(*) from trips group by 1 order by 1;
select sum(case when word = 'a' then miles else 0 end) / sum(miles) from trips;
select count(zone_n), count(*) from trips where not (zone_n > 10) or zone_n is null;
select word, sum(miles) from trips where day >= date '2024-02-01' - interval 10 day and day <
    '2024-02-01' group by word order by sum(miles);
select count(*) from trips semi join zones on trips.zone = zones.zone where miles > 0.25;
select count(*) from trips anti join zones on trips.zone_n = zones.zone;
select word from trips where word not like 'z%' and word like '_' group by word order by word desc;
select coalesce(zone_n, -1) as z, count(*) from trips group by z having count(*) between 70 and 75
    order by z;
select count(*) from trips where zone_n in (1, 2, null) or word in ('q', 'zz');
select borough, sum(t.miles * 1.5), min(z.miles) from trips as t inner join zones as z on z.zone =
    t.zone and t.flag group by z.borough order by borough desc;
select count(*) from trips where isodow(day) = 7 and dayofweek(day) = 0;
select t.word as w, count_if(t.miles > 0.9) from trips t group by w order by w;
select "zone", MILES from TRIPS where Zone = 12 order by miles;
select nullif(zone, 3) as z from trips where zone < 5 order by miles;
select miles > 0.5 as long, zone % 2 as odd, count(*) from trips group by long, odd order by long, odd;
select zone_n + 1 as s, zone from trips order by s nulls first, zone, miles limit 20;
select count(*) from trips where miles < 1/3.0 and 1 - miles < 0.9 and zone not in (1, -4);
select count(*) from trips where miles + 0.2 = 0.3 or miles * 3 - 1 > 0.5;
select count_if(zone_n > 10), count_if(zone_n is null and zone_n > 2) from trips;
select count(*) from trips where day >= timestamp '2024-01-05 12:00:00' and suffix(word, 'z');
select t.zone, z.zone, t.miles, z.miles from trips t join zones z on t.zone = z.zone order by t.miles limit 3;
select word, count(*) as n from trips group by (word) having (count_if(flag)) > 10 order by n;
select count(*) from zones join (select distinct zone from trips) f on f.zone = zones.zone;
select case when flag then null else true end as c, count(*) from trips group by c order by c nulls last;
select coalesce(day, timestamp '2024-01-01 10:00:00') as d from trips order by miles limit 2;
select max(x % 0.1), min(floor(x)), max(ceil(x)) from (select zone * 0.1 as x from trips) s;
select z.zone, n from zones z join (select zone, count(*) as n from trips group by zone) c on c.zone
    = z.zone where n > 60 order by z.zone;
select word, count(distinct zone_n) as n, count(distinct day), count(*), count(distinct word) from trips
    group by word having count(distinct zone) > 3 order by word;
select count(distinct zone_n), count(distinct miles) from trips where word = 'a';
select miles, count(*) as n, sum(zone) from trips group by miles order by miles limit 50;
select zone_n, word, count(*) as n from trips group by zone_n, word order by n desc, word, zone_n limit 30;
select zone_n, count(*) as n from trips group by zone_n order by zone_n nulls first limit 4 offset 2;
select zone_n, max(miles) as m from trips group by zone_n order by 1 desc limit 3;
select miles, word, zone_n, max(day) from trips group by miles, word, zone_n order by miles, word limit 20;
select zone, borough, t.miles from trips t join zones using (zone) where zone > 20 order by t.miles limit 9;
select * from trips join zones using (zone) where area < 20 order by trips.miles limit 5;
select count(*), sum(zone) from trips left join zones using (zone) where borough is null;
select zone, word, n from trips join (select zone, word, count(*) as n from trips group by zone, word) c
    using (zone, word) where trips.miles < 0.01 order by trips.miles;
select t.miles, n from trips t join (select zone_n, word, count(*) as n from trips group by zone_n, word) c on
    t.zone_n = c.zone_n and t.word = c.word and t.zone > 100 where miles < 0.3 order by t.miles limit 40;
select count(*), sum(n) from trips t left join (select zone, word, day, count(*) as n from trips where flag
    group by zone, word, day) c on t.zone = c.zone and t.day = c.day and t.word = c.word;
select z.borough, sum(t.miles) from trips t, zones z where t.zone = z.zone and z.zone in (select zone from
    trips group by zone having sum(miles) > 36) group by z.borough order by 1 nulls first
""".strip().split(";\n")

REFUSED = {
    "select zone from trips where sum(miles) over () > 1": "it is not covered",
    "select stddev(miles) over () from trips": "STDDEV is not covered over a window",
    "select sum(distinct zone) over () from trips": "DISTINCT over a window",
    "select *, sum(zone) over () from trips": "there is no star",
    "select sum(zone) over (order by zone range 1 preceding) from trips": "a RANGE begins",
    "select sum(zone) over (order by zone groups 1 preceding) from trips": "a frame of GROUPS",
    "select ntile(zone) over (order by zone) from trips": "its number is a whole one",
    "select lag(zone ignore nulls) over (order by zone) from trips": "it is not covered over a window",
    "select distinct on (zone) sum(zone) over () from trips": "DISTINCT ON beside window functions",
    "select rank() over w from trips": "a named window stands as it is",
    "select stddev(distinct zone) from trips": "DISTINCT in an aggregate",
    "select count(distinct zone, word) from trips": "DISTINCT in an aggregate",
    "select t.zone from trips t semi join zones z on t.zone = z.zone and t.miles < area": "behind ON",
    "select * rename (zone as z) from trips": "RENAME",
    "select zone from trips where (zone, miles) = (1, 2, 3)": "as many values",
    "select zone, sum(miles) from trips group by word": "neither in GROUP BY",
    "select trips.zone from trips, zones": "no key that is equal",
    "select * exclude (area) from trips t full join zones z on t.zone = z.zone": "star is a plain one",
    "select 1 from trips t full join zones z on t.zone = z.zone where t.zone in (select 1)": "no subquery in",
    "select zone from trips join zones using (word)": "USING takes columns",
    "select zone from trips natural join zones": "joins are INNER",
    "select miles from trips, zones where trips.zone = zones.zone": "several tables have this column",
    "select x.zone from trips": "there is no table x",
    "select": "it selects nothing: name columns",
    "select zone from trips limit zone": "LIMIT takes a number",
    "select zone from trips order by 3": "1 columns are selected",
    "select zone from": "Expected",
    "select zone from trips; select 1 from trips": "2 statements",
    "delete from trips": "DELETE is not covered",
    "show tables": "SHOW is not covered",
    "select string_agg(word, ',') over () from trips": "STRING_AGG is not covered over a window",
    "select zone from trips qualify zone = 1": "QUALIFY is not covered",
    "select * from trips group by rollup (word)": "there is no star",
    "select word, word from trips group by rollup (word)": "different names: give aliases",
    "select grouping(zone) from trips group by rollup (word)": "it takes keys of GROUP BY",
    "select grouping(word) from trips group by word": "GROUPING is not covered",
    "select count(*) from trips group by cube (zone, word, flag, day, miles, zone_n, zone + 1)": "128 sets",
    "select date 'nothing' from trips": "no date or time",
    "select zone from trips limit 40%": "LIMIT with PERCENT or WITH TIES is not",
    "select distinct on (zone) zone, count(*) from trips group by zone": "DISTINCT ON of groups",
    "select zone from trips tablesample 1 rows": "SAMPLE is not covered",
    "select zone from other.trips": "a file stands in quotes",
    "select k from trips q(k)": "an alias with names of columns is",
    "with recursive c as (select zone from trips) select zone from c": "RECURSIVE is not covered",
    "select zone from trips order by 1.5": "1 columns are selected",
    "": "there is no statement",
    "select zone from trips where " + " and ".join(["zone > 1"] * 3000): "nested too deep",
    "explain select 1 from trips": "EXPLAIN is not covered",
}


@pytest.mark.parametrize("statement", COVERED)
def test_answers_are_those_of_duckdb(sql_tables: dict[str, Table], sql_peer: Any, statement: str) -> None:
    ordered = "order by" in statement
    mine = sql(statement, **sql_tables)
    theirs = sql_peer.sql(statement)
    assert comparable(mine.rows(), ordered) == comparable(theirs.fetchall(), ordered)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_covered_is_refused_by_name(sql_tables: dict[str, Table], statement: str) -> None:
    with pytest.raises(ValueError, match="(?i)" + REFUSED[statement]) as refusal:
        sql(statement, **sql_tables)
    assert "\n" not in str(refusal.value)


def test_names_that_are_not_there(sql_tables: dict[str, Table]) -> None:
    with pytest.raises(KeyError, match="no table 'trip': given are trips, zones"):
        sql("select count(*) from trip", **sql_tables)
    with pytest.raises(KeyError, match="no column 'mile'"):
        sql("select mile from trips", **sql_tables)


def test_names_of_results(sql_tables: dict[str, Table], sql_peer: Any) -> None:
    statement = "select zone, count(*), sum(miles) as total from trips group by zone limit 1"
    assert (
        list(sql(statement, **sql_tables))
        == ["zone", "count_star()", "total"]
        == sql_peer.sql(statement).columns
    )


def test_the_command(tmp_path: Path, sql_peer: Any) -> None:
    trips().write_parquet(tmp_path / "trips.parquet")
    zones().write_csv(tmp_path / "z.csv")
    statement = (
        "select borough, sum(area) as a from trips join small on trips.zone = small.zone "
        "group by borough order by a"
    )
    sources = [str(tmp_path / "trips.parquet"), f"small={tmp_path / 'z.csv'}"]
    run = CliRunner().invoke(penstock, ["sql", statement, *sources, "-o", str(tmp_path / "out.csv")])
    assert run.exit_code == 0, run.output
    theirs = sql_peer.sql(statement.replace("small", "zones")).fetchall()
    mine = sql_peer.sql(f"select * from '{tmp_path / 'out.csv'}'").fetchall()
    assert comparable(mine, True) == comparable(theirs, True)
    shown = CliRunner().invoke(penstock, ["sql", statement, *sources])
    assert "borough" in shown.output
    assert "8 rows in" in shown.output
    assert "join on" in CliRunner().invoke(penstock, ["sql", statement, *sources, "--explain"]).output


def test_the_command_does_not_overwrite_a_table_that_it_reads(tmp_path: Path) -> None:
    table = tmp_path / "z.parquet"
    zones().write_parquet(table)
    before = table.read_bytes()
    run = CliRunner().invoke(penstock, ["sql", "select 1", f"a={table}", "-o", str(table)])
    assert isinstance(run.exception, ValueError)
    assert "it is the input" in str(run.exception)
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "select t.i from t join u on t.i = u.i where u.m is null",
            r"column 'u\.m' cannot be used: it is",
        ),
        ("select t.i from t join u on t.i = u.i where u.zz > 1", r"there is no column 'u\.zz': there are i"),
        ("select u.m from t full join u on t.i = u.i", r"column 'u\.m' cannot be used: it is"),
        ("select t.i from t right join u on t.i = u.i where m = 1", "column 'm' cannot be used: it is list"),
        ("select zz, (select max(i) from t v where v.i = t.i) from t", r"no column 'zz': there are i\"?$"),
    ],
)
def test_columns_of_joined_tables_that_cannot_be_used_are_named(statement: str, sentence: str) -> None:
    tables, _ = joined_with_lists()
    with pytest.raises(KeyError, match=sentence):
        sql(statement, **tables)


def joined_with_lists() -> tuple[dict[str, Any], Any]:
    """Tables with keys twice, of which one has a column of lists, here and in DuckDB."""
    import duckdb

    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    whole = {"t": pa.table({"i": [1, 2, 2]}), "u": pa.table({"i": [2, 2, 3], "m": [[1], [2], [3]]})}
    peer = duckdb.connect()
    with pytest.warns(UserWarning, match="left out"):
        tables = {name: open_table(table, executor="cpu") for name, table in whole.items()}
    for name, table in whole.items():
        peer.register(name, table)
    return tables, peer


@pytest.mark.parametrize("join", ["join", "left join", "right join", "full join"])
@pytest.mark.parametrize(
    "rest", ["order by m nulls last", "order by m desc nulls first", "group by t.i having m > 1 order by m"]
)
def test_a_result_may_be_called_as_a_column_that_cannot_be_used(join: str, rest: str) -> None:
    tables, peer = joined_with_lists()
    statement = f"select t.i as m from t {join} u on t.i = u.i {rest}"
    assert sql(statement, **tables).rows() == peer.sql(statement).fetchall()


@pytest.mark.parametrize("join", ["", "join u v on t.i = v.i", "full join u v on t.i = v.i"])
@pytest.mark.parametrize(
    "statement",
    [
        "select t.i as m, m from u t {}",
        "select t.i as m from u t {} where m = 2",
        "select t.i as m from u t {} order by m + 1",
        "select t.i as m from u t {} group by t.i having count(m) > 0",
    ],
)
def test_elsewhere_its_name_is_that_of_the_column(statement: str, join: str) -> None:
    tables, _ = joined_with_lists()
    with pytest.raises(KeyError, match="column 'm' cannot be used: it is list"):
        sql(statement.format(join), **tables)


def test_the_command_prints_the_columns_that_have_room(tmp_path: Path) -> None:
    header, row = ",".join(f"column_{k:02}" for k in range(30)), ",".join(f"{10**9 + k}" for k in range(30))
    (tmp_path / "wide.csv").write_text(f"{header}\n{row}\n")
    command = ["sql", "select * from wide", str(tmp_path / "wide.csv")]
    run = CliRunner(env={"COLUMNS": "80"}).invoke(penstock, command)
    assert "1000000005" in run.output
    assert "the first 6 of 30 columns: write all with -o" in run.output
    assert max(map(len, run.output.splitlines())) <= 80
    shown = CliRunner(env={"COLUMNS": "600"}).invoke(penstock, command)
    assert "1000000029" in shown.output
    assert "the first" not in shown.output
