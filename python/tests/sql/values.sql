select sum(d), avg(d), min(d), max(d), count(d) from s
select sum(e), avg(e), sum(d*e), sum(d+e), sum(d-e) from s
select d*e from s order by id
select d+e, d-e from s order by id
select d/e from s order by id
select d/3 from s order by id
select d*3, d+1, d-1 from s order by id
select d % 3, d // 3 from s order by id
select d % 0.3 from s order by id
select -d, abs(d), floor(d), ceil(d) from s order by id
select round(e), round(e,1), round(e,2) from s order by id
select sign(d), sign(f), sign(i8) from s order by id
select sqrt(abs(d)) from s order by id
select cast(d as integer), cast(e as bigint), cast(d as double) from s order by id
select cast(f as bigint) from s where f between -1e9 and 1e9 order by id
select cast(f as decimal(10,1)) from s where f between -1e6 and 1e6 order by id
select i8 + 1 from s where i8 < 127 order by id
select sum(i64) from s
select sum(i64), g from s group by g order by g
select sum(i64) * 1 from s
select avg(i64) from s
select avg(i8), avg(u8), avg(f) from s where id < 3
select i64 / 3 from s order by id
select f / 0 from s order by id
select f % 2 from s order by id
select f // 2 from s where id not in (3,5,6) order by id
select f + 1, f * 2, -f, abs(f) from s order by id
select floor(f), ceil(f), round(f), round(f, 1) from s order by id
select sqrt(f) from s where f >= 0 order by id
select power(k, 2) from s order by id
select mod(k, 2), mod(-7, 3) from s order by id
select isnan(f), isinf(f), isfinite(f) from s order by id
select min(f), max(f) from s
select sum(f) from s where f < 1e10 and f > -1e10
select id from s where f > 1e299 order by id
select id from s where f = 0 order by id
select id from s where f <> f order by id
select id from s where f = f order by id
select id, f from s order by f, id
select id, f from s order by f desc, id
select id, f from s order by f nulls first, id
select id, f from s order by f desc nulls first, id
select id, f from s order by f desc nulls last, id desc
select id, k from s order by k desc nulls first, id
select id, k from s order by k desc, id limit 5
select id, k from s order by k nulls first limit 3
select id, t from s order by t, id
select id, t from s order by t desc nulls first, id
select id, b from s order by b, id
select id, day from s order by day desc, id desc limit 7 offset 3
select id from s order by id limit 0
select id from s order by id offset 20
select id from s order by id limit 3 offset 100
select id from s order by -id limit 3
select id from s order by k + id desc nulls last, id limit 5
select g, count(*) from s group by g order by count(*) desc, g
select g, count(*) c from s group by g order by c, g limit 2
select g, k, count(*) from s group by g, k order by g, k
select g, sum(d) from s group by g having sum(d) > 10 order by g
select g, sum(d) as x from s group by g having x > 10 order by g
select g from s group by g having count(*) > 3 order by g
select g from s group by g having max(f) > 1 order by g
select g from s group by g having min(t) < 'b' order by g
select g from s group by g having count(distinct k) >= 3 order by g
select count(*) from s having count(*) > 100
select count(*) from s having count(*) > 1
select sum(k) from s having sum(k) is null
select max(k) from s group by g having g is null
select distinct g from s order by g
select distinct g, b from s order by g nulls first, b
select distinct f from s order by f
select distinct d from s order by d
select distinct k % 2 from s order by 1
select distinct t from s order by 1 desc
select distinct g from s order by g limit 2
select count(distinct g), count(distinct f), count(distinct d), count(distinct t), count(distinct b) from s
select count(distinct k) from e
select g, count(distinct f) from s group by g order by g
select count(*) from e
select sum(k), min(t), max(d), avg(f), count(k), count(*) from e
select g, count(*) from e group by g
select g, sum(d) from e group by g order by g
select * from e
select id, t || 'x', d + 1 from e
select distinct g from e
select count(*) from e where k > 3
select * from e order by id limit 3
select s.id from s join e on s.id = e.id
select s.id, e.t from s left join e on s.id = e.id order by s.id
select e.id from e left join s on s.id = e.id
select id from s where id in (select id from e)
select id from s where id not in (select id from e) order by id
select id from s where exists (select 1 from e) order by id
select id from s where not exists (select 1 from e where e.id = s.id) order by id
select id from s where k = (select max(k) from e)
select (select max(k) from e) from s order by id limit 2
select (select k from e) from o
select count(*), count(a), sum(a), min(a), avg(a), max(s), min(dd), sum(x) from n
select a, count(*) from n group by a
select s, count(*) from n group by s
select distinct a, s from n
select a = a, a is null, a + 1, s || 'x', x * 2 from n
select m from n where a = 1 or a is null order by m
select m from n where not (a = 1)
select m from n where a in (1, null)
select m from n where a not in (1, 2)
select m from n where m not in (select a from n)
select m from n where m in (select a from n)
select coalesce(a, m) from n order by m
select coalesce(a, x, m) from n order by m
select coalesce(s, 'none') from n
select coalesce(dd, date '2020-01-01') from n
select a from n order by a
select n.m, s.id from n left join s on n.a = s.k order by n.m
select k from s where k is null
select id from s where k is not null and k <> 1 order by id
select id from s where not (k = 1) order by id
select id from s where not (k = 1 and b) order by id
select id from s where not (k = 1 or b) order by id
select id from s where (k = 1) is null order by id
select id from s where (b and k > 2) is not true order by id
select id from s where b is not false order by id
select id from s where b is null or b order by id
select b and null, b or null, not b from s order by id
select null and false, null or true from o
select id from s where b = true order by id
select id from s where b > false order by id
select id from s where k in (1, 2, null) order by id
select id from s where k not in (1, 2, null) order by id
select id from s where k in (null) order by id
select k in (1, null) from s order by id
select k not in (1, 2) from s order by id
select id from s where g in ('north', 'nope') order by id
select id from s where g not in ('north') order by id
select id from s where d in (10.25, 7.5) order by id
select id from s where d in (10.250, 7.51) order by id
select id from s where f in (0.1, 2.5, 0) order by id
select id from s where day in ('2024-01-01', date '2024-02-29') order by id
select id from s where day in (date '2024-05-15') order by id
select id from s where id in (1, 2, 1000000000) order by id
select id from s where d between -1 and 5 order by id
select id from s where d not between -1 and 5 order by id
select id from s where k between null and 3 order by id
select id from s where d = 10.25 order by id
select id from s where d = 10.2500001 order by id
select id from s where d > 10.249 order by id
select id from s where d < 0.005 order by id
select id from s where e = 1.005 order by id
select id from s where e > d order by id
select id from s where d = k order by id
select id from s where d > f order by id
select id from s where k > f order by id
select id from s where k = 2.0 order by id
select id from s where k = 2.5 order by id
select id from s where k < 2.5 order by id
select id from s where k <> 2.5 order by id
select id from s where i64 = 9007199254740993 order by id
select id from s where i64 = 9007199254740992::double order by id
select id from s where u8 > -1 order by id
select id from s where i8 = 1000 order by id
select id from s where i8 < 1e10 order by id
select id from s where t = 'abc' order by id
select id from s where t > 'b' order by id
select id from s where t >= '' order by id
select id from s where t <> '' order by id
select id from s where t < g order by id
select min(t), max(t) from s
select id from s where '2024-01-01' = day order by id
select id from s where day > '2024-01-01' order by id
