select day + 1, day - 1, day - date '2024-01-01' from s order by id
select day + interval 1 day, day + interval 1 month, day - interval 1 year from s order by id
select day + interval '1 day', day + interval '2' month from s order by id
select ts + interval 1 hour, ts - interval 30 minute, ts + interval 1 month from s order by id
select ts - interval 1 day from s order by id
select day + k from s order by id
select day + interval 1 hour from s order by id
select date '2024-01-31' + interval 1 month from o
select date '2024-03-31' - interval 1 month from o
select id from s where day >= date '2024-01-01' and day < date '2024-01-01' + interval 3 month order by id
select id from s where ts > timestamp '2024-01-01 00:00:00' order by id
select id from s where ts > '2024-01-01' order by id
select id from s where ts::date = date '2024-02-29' order by id
select id from s where ts = day order by id
select id from s where ts > day order by id
select id from s where day between '2024-01-01' and '2024-06-30' order by id
select year(day), month(day), day(day), quarter(day), week(day), dayofweek(day), isodow(day), dayofyear(day) from s
  order by id
select hour(ts), minute(ts), second(ts) from s order by id
select extract(year from ts), extract(dow from ts), extract(epoch from ts), extract(hour from ts) from s order by id
select epoch(ts), epoch(day) from s order by id
select date_part('month', ts), date_part('doy', day), date_part('week', day), date_part('isoyear', day) from s order
  by id
select extract(decade from day), extract(century from day), extract(millennium from day) from s order by id
select date_trunc('year', ts), date_trunc('month', ts), date_trunc('day', ts), date_trunc('hour', ts),
  date_trunc('minute', ts), date_trunc('second', ts) from s order by id
select date_diff('day', day, date '2024-01-01') from s order by id
select date_diff('month', day, date '2024-01-01'), date_diff('year', day, date '2024-01-01') from s order by id
select date_diff('hour', ts, timestamp '2024-01-01 00:00:00') from s order by id
select datediff('day', day, ts) from s order by id
select last_day(day) from s order by id
select strftime(day, '%Y-%m') from s order by id
select cast(ts as date), cast(day as timestamp) from s order by id
select max(day) - min(day) from s
select day = '2024-01-01' from s order by id
select id::varchar, k::varchar, i64::varchar from s order by id
select k || 'x' from s order by id
select concat(k, '-', g) from s order by id
select concat(d, b, day) from s order by id
select cast(1.50 as varchar), cast(true as varchar), cast(1e20 as varchar), cast(0.1::double as varchar) from o
select try_cast(day as timestamp) from s order by id
select cast(k as double), cast(k as decimal(6,2)), cast(d as decimal(12,3)), cast(d as decimal(12,1)) from s order by
  id
select cast(d as decimal(10,0)) from s order by id
select cast(b as integer), cast(k as boolean), cast(d as boolean) from s order by id
select cast(e as integer), cast(-e as integer) from s order by id
select cast('2024-01-05' as date), '2024-01-05'::date, cast('12' as integer), '1.5'::double, 'true'::boolean from o
select s.* from s order by id
select id, * from c, s where c.cid = s.k order by id
select id as x, x + 1 as y from s order by id limit 3
select id from s order by g, id
select id as g from s order by g limit 3
select id k from s order by k limit 3
select -k as k, id from s order by k, id limit 5
select k from s order by 1 desc nulls last limit 3
select g, count(*) from s group by g order by 2 desc, 1 limit 3
select g from s group by g order by max(d) desc nulls last, g
select g from s order by d desc nulls last limit 4
select distinct g from s order by g desc
select distinct g from s order by length(g)
select sum(k) from s order by 1
select id from s order by all limit 3
from s select id order by id limit 3
from c
table c
values (1, 'a'), (2, 'b')
select * from (values (1, 'a'), (2, 'b')) x(p, q) order by p
select id from s where k = 1 and k = 2
select id from s where true order by id limit 2
select id from s where false
select id from s where null
select id from s where 1 = 1 and 'a' < 'b' order by id limit 2
select id from s where not k > 1 order by id
select 1 as a, 2 as b, null as c from s order by id limit 2
select 'x' as c, count(*) from s group by c
select 'x' as c, g, count(*) from s group by 1, 2 order by 2
select count(*), 1, 'x' from s
select 7 / 2, 7 // 2, -7 // 2, -7 % 3, 7 % -3, 7.5 % 2, 1 / 3.0, 2 ** 3 from o
select 1 + 1.5, 1.1 + 2.22, 1.1 * 2.2, 0.1 + 0.2, 0.1 + 0.2 = 0.3, 1.0 / 3 from o
select 0.1::double + 0.2::double = 0.3::double from o
select 1e0, 1.5e3, 0x1F, 1_000 from o
select 9223372036854775807, -9223372036854775808 from o
select k ^ 2 from s order by id
select true and false, true or null, not null from o
select 'a' = 'a ', 'a' < 'B', 'ä' > 'z' from o
select 'a' || 'b' || 'c' from o
select null = null, null <> 1, null is null from o
select 1 between 0 and 2, 1 not between 0 and 2, 1 in (1, 2) from o
select date '2024-01-01' < timestamp '2024-01-01 00:00:01' from o
select date '2024-01-01' - date '2023-01-01' from o
select abs(-5), sign(-2.5), ceil(1.2), floor(-1.2), round(2.5), round(-2.5), round(1.005, 2), trunc(1.7) from o
select trunc(d), trunc(f) from s where abs(f) < 1e6 order by id
select k is distinct from 2, k is not distinct from null from s order by id
select id from s where g is not distinct from null order by id
select max(id) filter (where b), min(d) filter (where not b) from s
select sum(d) filter (where g is null) from s
select count(*) filter (where k > 100) from s
select sum(k) filter (where k > 100) from s
select g, count(distinct k) filter (where b) from s group by g order by g
select sum(u8), avg(u8), max(u8) from s
select sum(i8), avg(i8), sum(i8) / 3, sum(i8) // 3, sum(i8) % 3 from s
select g, sum(i8) % 3, -sum(i8) // 2 from s group by g order by g
select g, count(*) * 1.0 / 3 from s group by g order by g
select sum(d) * 1.5, sum(d) + 0.001, sum(d) / 3, avg(d) * 2 from s
select 100.0 * sum(case when b then d else 0 end) / sum(d) from s
select sum(d * (1 - e)) from s
select sum(d * e * e) from s
select d * e * e from s order by id
select max(d) > 5, min(k) = 1 from s
select count(*) = 24 from s
select g = 'north', count(*) from s group by g = 'north' order by 1
select g || '!' as x, count(*) from s group by x having x <> 'north!' order by x
select g, count(*) from s where g like 'n%' group by g
select g, k, sum(d) from s group by g, k having g = 'north' order by g, k
select sum(d) from s group by g order by g
select count(*) from s group by g, b order by count(*), g, b
select distinct count(*) from s group by g order by 1
select count(distinct g || t) from s
select count(distinct k + id) from s
select count(distinct day), count(distinct ts) from s
select g, min(distinct d) from s group by g order by g
select avg(d), avg(e), avg(k) from s where false
select sum(k), count(*) from s where g = 'nothing'
select g, sum(k) from s where g = 'nothing' group by g
select min(i64), max(i64) from s
select i64 from s order by i64 nulls first
select i64 - 1 from s where i64 > 0 order by id
select i64::double from s order by id
select avg(i64) from s where i64 < 100 and i64 > -100
select id from s where f > 1 order by id
select id, f > 0 from s order by id
select f = -0.0 from s order by id
select distinct f = 0 from s order by 1
select avg(f) from s
select sum(f) from s
select var_pop(f) from s where f between -10 and 10
