"""Functions and casts of penstock.sql beside DuckDB's answers."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.columns import Table, sql

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from sql_peers import comparable

COVERED = """
select word, count(*) from trips where upper(word) = 'ZZ' or lower(word) like 'b%' group by word order by
    word;
select left(borough, 1) as l, right(borough, 1) as r, count(*) from zones group by l, r order by l nulls
    last, r nulls last;
select substring(borough, 2, 1) as s, substr(borough, -1), substring(borough, 0, 2), length(borough) from
    zones order by zone limit 9;
select left(borough, -1), right(borough, -1), reverse(borough), trim(borough || ' '), ltrim(borough,
    'b'), rtrim(borough, '0123'), replace(borough, 'b', 'B') from zones order by zone limit 12;
select word || '-' || word as w, count(*) from trips group by w order by w;
select concat(borough, '!') as c, borough || '!' as d, count(*) from zones group by c, d order by c, d;
select count(*) from zones where borough like 'b\\_' escape '\' or borough ilike 'B1' or borough not like
    '_2';
select count(*) from zones where regexp_matches(borough, '[1-3]') and not borough similar to 'b[13]' and
    regexp_full_match(borough, 'b.');
select min(word), max(word), min(borough), max(borough || 'x') from trips join zones using (zone);
select zone, min(borough), max(coalesce(borough, 'none')) from zones where zone < 30 group by zone order
    by zone;
select case when zone < 100 then word else 'far' end as c, count(*) from trips group by c order by c;
select case when flag then word when zone > 100 then 'none' end as c, count(*) from trips group by c
    order by c nulls last;
select coalesce(borough, 'x' || 'y') as b, count(*) from zones group by b order by b;
select nullif(word, 'a') as n, count(*) from trips group by n order by n nulls last;
select count(*) from trips join zones using (zone) where word < borough;
select count(*) from trips join zones using (zone) where word = borough or word <> borough;
select count(*) from trips t join zones z on t.zone = z.zone and left(t.word, 1) = left(z.borough, 1);
select strpos(borough, '3') as p, instr(borough, 'b') as i, count(*) from zones group by p, i order by p
    nulls last;
select word from trips where length(word) > 1 and starts_with(word, 'z') and contains(word, 'zz') and
    suffix(word, 'z') limit 3;
select cast(miles * 10 as bigint) as m, count(*) from trips group by m order by m;
select cast(area + 0.5 as integer) as m, cast(-area - 0.5 as bigint) as n from zones order by zone limit
    20;
select cast(zone as double) / 7 as d, cast(zone as decimal(10,2)) as e, cast(miles as decimal(8,3)) as f,
    cast(zone as boolean) as g, cast(flag as integer) as h from trips order by miles, zone limit 30;
select round(miles, 2) as r, round(miles * 100) as s, round(-miles, 1) as t, round(zone, 0), round(zone,
    -1) from trips order by miles, zone limit 50;
select round(cast(miles as decimal(9,4)), 2) as r, round(cast(miles as decimal(9,4))) as q, count(*) from
    trips group by r, q order by r, q limit 40;
select quarter(day) as q, week(day) as w, dayofyear(day) as d, extract(epoch from day) as e, count(*)
    from trips group by q, w, d, e order by d;
select cast(date_trunc('week', day) as date) as w, cast(date_trunc('month', day) as date) as m,
    cast(date_trunc('quarter', day) as date) as q, cast(date_trunc('year', day) as date) as y, count(*)
    from trips group by w, m, q, y order by w, m;
select cast(day + interval 3 day as date) as a, cast(day - interval 2 week as date) as b, cast(day +
    interval 1 month as date) as c, cast(day - interval 13 month as date) as d, cast(day + interval 1
    year as date) as e from trips order by miles limit 40;
select count(*) from trips where day + interval 10 day > date '2024-02-10' and day + interval '1' month <
    date '2024-03-05';
select day + interval 5 hour as h, hour(day + interval 5 hour) as i, minute(day + interval 7 minute) as
    m, second(day + interval 11 second) as s from trips order by miles limit 5;
select cast(day as timestamp) as t, cast(cast(day as timestamp) as date) as d, epoch(cast(day as
    timestamp)) from trips order by miles limit 5;
select date_part('year', day) as y, date_part('dow', day) as d, count(*) from trips group by y, d order
    by y, d;
select last_day(day) as l, date_diff('day', date '2024-01-01', day) as n from trips order by miles limit
    5;
select cast(replace(borough, 'b', '2024-01-1') as date) as d from zones order by zone limit 3;
select cast(right(borough, 1) as bigint) as n, cast(right(borough, 1) as double) / 2 as d, sum(area) from
    zones group by n, d order by n nulls last;
select sign(zone - 100) as s, count(*) from trips group by s order by s;
select date_trunc('hour', cast(day as timestamp) + interval 90 minute) as h from trips order by miles
    limit 3;
select count(*) from trips where cast('2024-01-15' as date) = day or day = cast('2024-01-16' as
    timestamp)
""".strip().split(";\n")

REFUSED = {
    "select substring(word, zone) from trips": "a whole number that is written down",
    "select word like borough from trips join zones using (zone)": "a text that is written down",
    "select regexp_matches(word, '(') from trips": "the pattern is none",
    "select upper(zone) from trips": "a column of text is wanted",
    "select cast(word as bigint) from trips": "the text '[abz]+', which is no integer",
    "select try_cast(word as blob) from trips": "CAST to BLOB is not covered",
    "select try_cast(miles as decimal(38, 2)) from trips": "more than 18 digits is not covered",
    "select regexp_extract(word, 'a', 9) from trips": "takes a group up to 8",
    "select strftime(zone, '%Y') from trips": "a date or a time is wanted for strftime",
    "select strftime(word, '%Y') from trips": "a date or a time is wanted for strftime",
    "select strftime(day, '%c') from trips": "'%c' in a format is not covered",
    "select power(miles, 1.5) from trips": "a power is a whole number to 8",
    "select regexp_replace(word, '(', '') from trips": "the pattern is none",
    "select lpad(word, 5, '') from trips": "a text to fill with",
    "select date_diff('decade', day, day) from trips": "DATE_DIFF in WEEK",
    "select day + interval 1 microsecond from trips": "intervals are so many of",
    "select date_trunc('decade', day) from trips": "to a DECADE is not covered",
    "select extract(era from day) from trips": "the part ERA",
    "select round(miles, zone) from trips": "a whole number that is written down",
    "select median(miles) from trips": "sql: median\\(miles\\): MEDIAN is not covered",
    "select string_agg(word, ',') from trips": "sql: string_agg\\(word, ','\\): STRING_AGG is not covered",
    "select group_concat( word ) from trips": "sql: group_concat\\( word \\): GROUP_CONCAT is not covered",
    "select min_by(word,\n miles) from trips": "sql: min_by\\(word, miles\\): MIN_BY is not covered",
    "select log10(miles + (1)) from trips": "sql: log10\\(miles \\+ \\(1\\)\\): LOG10 is not covered",
    "select listagg(word) filter (where flag) from trips": "LISTAGG with FILTER is not covered",
    "select regexp_matches(word, 'a', 'i') from trips": "REGEXP_MATCHES with 'i' is not covered",
    "select max(miles, 2) from trips": "MAX of several values is not covered",
    "select max(miles, 2) over () from trips": "MAX of several values is not covered",
    "select count(miles, zone) from trips": "COUNT of several values is not covered",
    "select round(miles, 1, 2) from trips": "ROUND with 2 is not covered",
    "select last_day(day, 'week') from trips": "a date or a time, and no unit",
    "select cast(zone as decimal(all, 1)) from trips": "DECIMAL takes two whole numbers",
    "select cast(zone as decimal(3.5, 1)) from trips": "DECIMAL takes two whole numbers",
    "select repeat(word, 1000000000000) from trips": "texts have up to 1048576 characters",
    "select lpad(word, 1000000000000, 'x') from trips": "a length from 0 to 1048576",
    "select extract (window from day from trips": "the part WINDOW of a time is not covered",
    "values (1, @)": "something is missing in it",
    "select coalesce() from trips": "^sql: line 1, column 17: something is missing here$",
    "select zone from trips where zone >": "^sql: line 1, column 35: something is missing here$",
    "select word[1] from trips": "sql: word\\[1\\]: it is not covered",
    "select sum(word) from trips": "no sum of values of type string",
    "select bool_and(zone) from trips": "a condition is wanted",
    "select zone from trips where word in ('a', 1)": "word is a text, and 1 is none",
    "select cast(day as timestamp) - cast(day as timestamp) from trips": "the difference of two times",
    "select max(cast(day as timestamp)) - min(day) from trips": "the difference of two times",
}


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
