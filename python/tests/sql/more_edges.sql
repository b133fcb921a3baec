select c.cid, s.id from c left join s on c.cid = s.k and c.rank = 1 and s.b order by 1, 2
select c.cid, count(s.id) from c left join s on c.cid = s.k and c.rank > 1 group by c.cid order by 1
select c.cid, s.id from s right join c on c.cid = s.k and c.rank = 1 order by 1, 2
select (k, g) = (1, 'north') from s order by id
select (k, g) in ((1, 'north'), (2, 'south')) from s order by id
select id from s where (k, g) <> (1, 'north') order by id
select id from s where (k, g) not in ((1, 'north'), (2, 'south')) order by id
select k in (id, null) from s order by id
select k in (i8, id) from s order by id
select id from s where k not in (i8, null) order by id
select g, max(k::varchar) from s group by g having max(k::varchar) > '3' order by g
select g, k::varchar || '!' as kk, count(*) from s group by g, kk order by kk, g
select distinct k::varchar as x from s order by x
select c.name, s.d::varchar from s join c on s.k = c.cid order by s.d::varchar, s.id
select c.name, (s.d * c.credit)::varchar from s join c on s.k = c.cid order by s.id
select c.name, (s.k + c.rank)::varchar as x, count(*) from s left join c on s.k = c.cid group by all order by all
select id from s where k::varchar in (select rank::varchar from c) order by id
select id from s where k::varchar not in (select rank::varchar from c where rank is not null) order by id
select id, (select max(c.rank::varchar) from c where c.cid = s.k) from s order by id
select id, (select max(c.name) from c where c.cid::varchar = s.k::varchar) from s order by id
select s.id from s where exists (select 1 from c where c.cid::varchar = s.k::varchar and c.rank > 1) order by 1
select k as g, g || 'x' as h from s order by id
select id as rank, rank + 1 as r2 from s join c on s.k = c.cid order by s.id
select k * 2 as x, sum(d) as t from s where x > 2 group by x having t > 1 order by x + 1
select k as x, x as y, x + y as z from s where z > 4 order by id
select g as x, count(*) filter (where x = 'north') from s group by x order by x
select -k as k, id from s where k > 1 order by k, id
select k + 1 as d, d from s order by id
select sum(k) as x, x + 1 from s
select g, sum(k) as x, x * 2 as y from s group by g having y > 4 order by y, g
select g, count(*) as n, n > 3 as big from s group by g order by big, g
select f from s except all select f from s where id > 3 order by f
select b, day from s intersect all select b, day from s where id < 9 order by b, day
select sum(distinct k) filter (where b), count(distinct k) filter (where b) from s
select sum(distinct k + 0.5), avg(distinct i8 / 2) from s
select b, sum(distinct f), count(distinct f) from s where f > -1e300 and f < 1e300 group by b order by b
select try_cast(g || '1' as integer), try_cast(left(t, 1) as integer) from s order by id
select cast(try_cast(t as double) as varchar) from s order by id
select d // 0.5, k // 0.5, f // 0.5, d // 2 from s where id <> 3 and id <> 5 and id <> 6 order by id
select day - date '2000-01-01' as n, (day - date '2000-01-01') // 365 from s order by id
select max(day) - min(day) > 100, count(*) from s group by b order by 1, 2
select count(*) from s where day - date '2024-01-01' between 0 and 60
select x.n, s.id from s, (select count(*) n from c where false) x order by s.id
select s.id from s, (select max(k) m, min(k) l from s) x where s.k = x.m or s.k = x.l order by s.id
select s.id, c.name, x.t from s join c on s.k = c.cid, (select sum(d) t from s) x order by s.id
select s.id, c.name, x.t from s left join c on s.k = c.cid cross join (select sum(d) t from s) x order by s.id
select s.g, sum(s.d) / x.t from s, (select sum(d) t from s) x group by s.g, x.t order by 1
select o.v + x.n from o, (select 5 as n) x
select s.id, (s.k::varchar || s.g) as kg from s where kg like '1%' order by s.id
select strftime(day, '%Y') as y, count(*) from s group by y having y > '2020' order by y
select strftime(coalesce(day, since), '%Y-%m-%d') from s left join c on s.k = c.cid order by s.id
select round(d / 3, 2)::varchar, (d / 3)::decimal(8,2)::varchar from s order by id
select w.i, w.z || w.p::varchar from w where w.p < 30 order by w.i
select z || x::varchar as zx, count(*) from w where x < 0.05 group by zx order by zx
select count(distinct i16::varchar || z) from w
select f4::varchar as t, count(*) from w group by t order by t
select c.cid, s.d from c left join s on c.cid = s.id where c.rank in (1, 2) or s.d is null or c.cid = 3 order by 1
select c.cid, s.d from c join s on c.cid = s.id where (c.rank = 1 and s.d > 1) or (c.rank = 5 and s.d < 1) or (c.cid =
  2 and s.g = 'south') order by 1
select a.id, b.id from s a join s b on a.id = b.id + 1 where (a.g = 'north' and b.g = 'east') or (a.g = 'south' and
  b.g = 'north') order by 1
select s.id, s.f from s where s.f in (0.1, 0.2, 1e300, 'nan'::double) order by id
select (k, g) in ((null, 'north'), (2, null)) from s order by id
select id from s where (k, b) = (i8, b) order by id
select id from s where (f, d) = ('nan'::double, d) order by id
select i16, p, stddev(i16) as d from (select i16, p from w union all select i16, p from w) group by i16, p order by i16, p
