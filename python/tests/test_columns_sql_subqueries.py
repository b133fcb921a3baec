"""Subqueries, sets and groups of penstock.sql beside DuckDB's answers."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.columns import Table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from sql_peers import comparable

COVERED = """
select count(*) from trips where miles > (select avg(miles) from trips);
select zone, (select max(area) from zones) as m from trips order by miles limit 3;
select word, count(*) from trips group by word having count(*) > (select count(*) / 5 from trips) order
    by word;
select count(*) from trips where miles > (select miles from zones where area < 0);
select count(*) from trips where zone > (select min(zone) + 10 from zones where borough = 'b3');
select count(*), sum(miles) from trips t where miles > (select avg(u.miles) from trips u where u.zone =
    t.zone);
select count(*) from trips t where miles < (select 0.5 * max(u.miles) from trips u where u.zone = t.zone
    and u.word = t.word and u.flag);
select count(*) from trips t where (select count(*) from zones z where z.zone = t.zone) = 0;
select zone, (select count(*) from trips t where t.zone = z.zone) as n from zones z order by zone limit
    20;
select zone, (select sum(miles) from trips t where t.zone = z.zone and t.flag) as n from zones z order by
    zone limit 20;
select count(*) from trips where exists (select 1 from zones);
select count(*) from trips where not exists (select 1 from zones where area < 0);
select count(*) from zones z where exists (select * from trips t where t.zone = z.zone and t.miles >
    0.99);
select count(*) from zones z where not exists (select * from trips t where t.zone = z.zone and t.miles >
    0.99);
select count(*) from trips t where exists (select 1 from zones z where z.zone = t.zone_n) or t.flag;
select count(*) from trips t where not exists (select 1 from trips u where u.zone = t.zone and u.word <>
    t.word and u.day > date '2024-02-05');
select count(*) from trips t where exists (select 1 from trips u where u.zone = t.zone and u.miles >
    t.miles and u.flag);
select count(*) from trips t where exists (select 1 from trips u where u.zone_n = t.zone_n and t.day <
    u.day and u.word = 'a');
select count(*) from trips where zone_n not in (select zone from zones);
select count(*) from trips where zone_n not in (select zone_n from trips where miles < 0.2);
select count(*) from trips where zone_n not in (select zone from zones where area < 0);
select count(*) from trips where not (zone in (select zone from zones where area > 50)) and word = 'a';
select count(*) from trips where zone_n in (select zone_n from trips where miles < 0.11) or flag;
select zone_n in (select zone from zones) as i, count(*) from trips group by i order by i nulls last;
select zone_n not in (select zone_n from trips where miles < 0.2) as i, count(*) from trips group by i
    order by i nulls last;
select count(*) from trips t where word in (select word from trips u where u.zone = t.zone and u.flag and
    u.miles > 0.5);
select count(*) from trips where word in (select borough from zones);
select count(*) from zones where borough not in (select borough from zones where area < 30 and borough is
    not null);
select count(*) from trips, zones where trips.zone = zones.zone and area > (select avg(area) from zones)
    and trips.miles < (select avg(t.miles) from trips t where t.zone = zones.zone);
select z.borough, count(*) from zones z join trips t on z.zone = t.zone where t.miles = (select
    max(u.miles) from trips u where u.zone = z.zone) group by 1 order by 1;
select zone from trips where zone < 5 union all select zone from zones where zone < 5;
select zone from trips union select zone from zones order by zone limit 7;
select zone from zones except select zone from trips where miles > 0.5 order by 1;
select zone_n from trips intersect select zone from zones order by zone_n;
select zone, word from trips union select zone, borough from zones order by zone, word nulls first limit
    11;
select zone, 1.5 as x from trips where zone < 3 union all select zone, null from zones where zone < 3
    order by zone, x;
select day from trips union select timestamp '2024-01-01 10:00:00' from zones order by day limit 3;
select count(*) from (select zone from trips union select zone + 1 from zones) u;
with u as (select zone from trips union all select zone from zones) select zone, count(*) as n from u
    group by zone order by n desc, zone limit 4;
select word, sum(miles) filter (where flag), count(*) filter (where miles > 0.5), count(zone_n) filter
    (where not flag), max(zone) filter (where zone < 0) from trips group by word order by word;
select stddev(miles), stddev_pop(miles), variance(miles), var_pop(miles), var_samp(zone),
    stddev_samp(zone_n) from trips;
select word, stddev(miles + 1000000), var_pop(zone), variance(zone_n) from trips group by word order by
    word;
select zone_n, stddev(miles), variance(area) from (select trips.zone_n, trips.miles, area from trips join
    zones on trips.zone = zones.zone) t group by zone_n order by zone_n nulls first limit 9;
select miles, variance(zone) as v from trips where zone < 4 group by miles order by miles limit 3;
select stddev(miles) from trips where zone > 1000;
select word, case when sum(miles) > 2500 then 'much' else 'little' end as how, round(avg(miles), 2) as m,
    floor(sum(miles)) as f from trips group by word order by word;
select upper(word) as w, word || '!', count(*) from trips group by word order by w;
select zone % 10 + 1 as z, count(*) + zone % 10 from trips group by zone % 10 order by z;
select distinct count(*) from trips group by word;
select distinct word, count(*) > 3 as m from trips group by word, flag order by word;
select greatest(zone, zone_n, 100) as g, count(*) from trips group by g order by g limit 3;
select least(miles, 0.5) as g from trips order by g desc limit 3;
select coalesce(sum(zone), 0) from trips where zone > 1000;
select sum(zone) filter (where flag) / count(*) from trips;
select zone from trips t where zone < 9 and not exists (select 1 from zones z where z.zone = t.zone)
    group by zone order by zone;
select sum(n) from (select zone, count(*) as n from trips group by zone having count(*) > (select avg(n)
    from (select count(*) as n from trips group by zone) a)) b;
select b, count(*), sum(m) from (select word as b, miles * 2 as m, zone from trips where zone > 10) t
    where zone < 100 group by b order by b;
select c.zone, n from (select zone, miles as n from trips) c where c.n < 0.001 order by n;
select z.zone, count(t.miles) as n, count(*) from zones z left join trips t on z.zone = t.zone and t.flag
    group by z.zone order by n, z.zone limit 30;
select z.borough, sum(t.miles) from zones z left join trips t on z.zone = t.zone and t.miles > 0.5 where
    z.area > 10 group by z.borough order by 1 nulls first;
select n, count(*) from (select z.zone, count(t.zone) from zones z left outer join trips t on z.zone =
    t.zone and t.word not like 'a%' group by z.zone) as c (k, n) group by n order by n;
select z.zone, t.word, t.miles from zones z left join trips t on z.zone = t.zone and t.miles < 0.01 order
    by z.zone, t.miles limit 20;
select zone, (select coalesce(sum(miles), 0) from trips t where t.zone = z.zone and t.miles < 0.01) as x
    from zones z order by zone;
select count(*) from zones z where (select coalesce(sum(miles), -1) from trips t where t.zone = z.zone and
    t.miles < 0.01) < 0;
select zone, (select greatest(max(miles), 0) from trips t where t.zone = z.zone and t.miles < 0.01) as g,
    (select case when max(miles) is null then 'none' else 'some' end from trips t where t.zone = z.zone and
    t.miles < 0.01) as c from zones z order by zone;
select count(*) from zones z where (select max(miles) is null from trips t where t.zone = z.zone and
    t.miles < 0.01);
select zone, (select coalesce(sum(zone), 0) + coalesce(min(miles), 7) from trips t where t.zone = z.zone
    and t.miles < 0.01) as x from zones z order by zone;
select zone, (select 1 + count(*) * 2 from trips t where t.zone = z.zone and t.miles < 0.01) as n, (select
    count(*) filter (where flag) from trips t where t.zone = z.zone) as f, (select count(distinct word) + 1
    from trips t where t.zone = z.zone and not t.flag) as d from zones z order by zone;
select count(*) from zones where exists (select 1 from trips limit 0);
select count(*) from trips where zone in (select zone from zones order by zone offset 190);
select count(*) from zones where exists (select 1 from trips limit 5) and not exists (select 1 from trips
    offset 1000000);
select count(*) from zones z where exists (select 1 from trips t where t.zone = z.zone and t.miles < 0.01
    order by t.miles limit 1);
select count(*) from zones z where exists (select max(miles) from trips t where t.zone = z.zone and t.miles
    < 0.01);
select count(*) from zones z where not exists (select count(*) from trips t where t.zone = z.zone) or zone
    < 3;
select count(*) from zones where not exists (select count(*) from trips where miles > 100);
select count(*) from zones where exists (select max(miles) from trips having max(miles) > 100);
select count(*) from zones z where exists (select max(miles) from trips t where t.zone = z.zone and t.miles
    < 0.01 group by word)
""".strip().split(";\n")

REFUSED = {
    "select zone from trips where miles > (select miles from zones where area < "
    "2)": "more than one row",
    "select zone from trips where miles > (select miles, area from zones where area "
    "< 0)": "has one column",
    "select zone from trips where zone in (select zone, area from zones)": "has one column",
    "select zone from trips t where exists (select 1 from zones z where z.zone < t.zone)": "has keys",
    "select zone from trips t where miles > (select area from zones z where z.zone = "
    "t.zone)": "made of aggregates",
    "select zone from trips t where miles > (select sum(area) from zones z where "
    "z.zone + t.zone = 3)": "its own columns with the outer",
    "select zone from trips t where miles > (select sum(area * t.miles) from zones z "
    "where z.zone = t.zone)": "in conditions of WHERE alone",
    "select zone from trips t where miles > (select area + count(*) from zones z where "
    "z.zone = t.zone)": "values alone",
    "select zone from trips t where exists (select 1 from zones z where z.zone = t.zone limit "
    "0)": "LIMIT of a correlated",
    "select zone from trips t where not exists (select 1 from zones z where z.zone = t.zone offset "
    "9)": "OFFSET of a correlated",
    "select zone, (select max(area) from zones z where z.zone = t.zone limit 0) from trips "
    "t": "LIMIT of a correlated",
    "select zone, (select max(area) from zones z where z.zone = t.zone having max(area) > 9) from trips "
    "t": "HAVING of a correlated",
    "select zone from trips t where exists (select max(area) from zones z where z.zone = t.zone having "
    "max(area) > 9)": "HAVING of a correlated",
    "select zone from trips t where exists (select area from zones z where z.zone = t.zone group by "
    "rollup(area))": "in a correlated subquery",
    "select zone from trips t where zone in (select z.zone from zones z where z.area = t.zone limit "
    "1)": "has no LIMIT",
    "select zone from trips t where zone not in (select z.zone from zones z where z.area = t.zone limit "
    "1)": "has no LIMIT",
    "select zone from trips t where zone in (select max(zone) from zones z where z.area = t.zone group by "
    "z.miles)": "has no groups",
    "select zone from trips t where zone not in (select zone from zones z where "
    "z.miles < t.zone)": "compares with = alone",
    "select zone from trips where zone > all (select zone from zones)": "ALL with a subquery",
    "select zone from trips union select zone, area from zones": "1 and 2 columns",
    "select zone from trips union select borough from zones": "cast one to the other",
}  # fmt: skip


@pytest.mark.parametrize("statement", COVERED)
def test_answers_are_those_of_duckdb(sql_tables: dict[str, Table], sql_peer: Any, statement: str) -> None:
    ordered = "order by" in statement
    mine, theirs = sql(statement, **sql_tables), sql_peer.sql(statement)
    assert comparable(mine.rows(), ordered) == comparable(theirs.fetchall(), ordered)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_covered_is_refused_by_name(sql_tables: dict[str, Table], statement: str) -> None:
    with pytest.raises((ValueError, TypeError), match="(?i)" + REFUSED[statement]) as refusal:
        sql(statement, **sql_tables)
    assert "\n" not in str(refusal.value)
