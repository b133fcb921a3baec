select g, k, count(*) from s group by all order by g, k
select g, count(*), 'x' from s group by all order by all
select upper(g), k % 2, sum(d) from s group by all order by all
select count(*) from s group by all
select g, k from s order by all limit 5
select g, k from s order by all desc limit 5
select * from c order by all
select * exclude (cid) from c order by all desc nulls first
select * from (select g, count(*) as n from s group by g) order by all
select g, k from s union all select 'x', cid from c order by all desc nulls last
select id as x, x + 1 as y, y * 2 as z from s order by id limit 3
select k as x from s where x > 2 order by x
select k * 2 as x, count(*) from s where x > 2 group by x order by x
select k + 1 as k2, k2 + 1 as k3 from s where k3 > 4 and k2 < 8 order by k3 + 1, id
select k + 1 as k, k + 1 as j from s order by id
select d * 2 as dd, dd + 1 as ee, sum(dd) as t from s group by all order by all
select length(t) as l, count(*) as n from s where l > 2 group by l having n > 1 order by l
select * exclude (credit, w) from c order by cid
select * exclude credit from c order by cid
select * replace (cid + 1 as cid) from c order by cid
select c.* exclude (name) from c order by cid
select * exclude (region) from c join r using (region) order by cid
select id from s where k in (id, 2) order by id
select id from s where 1 in (k, i8) order by id
select id from s where k not in (id, i8) order by id
select id from s where (k, g) in ((1, 'north'), (2, 'south')) order by id
select id from s where (k, id) = (1, 1)
select id from s where k is not null and g is not null and (k, g) not in ((1, 'north'), (2, 'south')) order by id
select id from s where (k, g) <> (1, 'north') and k is not null and g is not null order by id
select id from s where k = any (select cid from c) order by id
select id from s where k <> all (select cid from c) order by id
select id from s where k <> all (select rank from c) order by id
select id from s where not k = any (select rank from c) order by id
select s.id, x.a from s, (select avg(d) a from s) x where s.d > x.a order by s.id
select s.id, s.d - x.a from s cross join (select max(d) a, min(day) b from s) x where s.day > x.b order by s.id
with m as (select max(k) mk from s) select id from s, m where k = mk order by id
with m as (select avg(k) mk from s) select g, count(*) from s, m where k > mk group by g order by g
select g, count(*) * 100.0 / t.n from s, (select count(*) n from s) t group by g, t.n order by g
select c.cid, x.n from c, (select count(*) n from e) x order by 1
select c.cid from c, (select k from e) x
select c.cid, o.v, x.n from c, o, (select count(*) n from s) x order by 1
select o.v, x.n from o, (select count(*) n from s) x
select * from o right join c on o.v = c.cid order by c.cid
select c.*, o.* from o right outer join c on o.v = c.cid order by c.cid
select r.region, count(c.cid) from c right join r on c.region = r.region group by r.region order by 1
select s.id, c.name from s left join c on s.k = c.cid and s.b and c.rank > 1 and s.g = 'north' order by s.id
select s.id from s anti join c on s.k = c.cid and s.b order by s.id
select s.id from s semi join c on s.k = c.cid and s.b order by s.id
select s.id, s.g, r.quota from s left join r on upper(s.g) = upper(r.region) order by s.id
select a.id, c.cid from s a join c on a.k - 1 = c.cid * 2 order by a.id
select a.id, c.cid from s a left join c on a.k = c.cid + 1 and c.rank = 5 and length(c.name) = length(a.g) - 2 order
  by a.id
select s.id from s semi join c on year(s.day) = year(c.since) order by s.id
select 1 + 1 as two, 'a' as t, null as n, date '2024-01-01' as d
select 1 as x where 1 = 2
with a as (select 1 as x) select * from a
with a(x, y) as (select id, k from s) select x from a where y = 2 order by x
with a(x) as (select id, k from s) select x, k from a where k = 2 order by x
select 1 as a union all select 2 order by a
select exp.v from (select 1 as v) exp
select (select max(k) from s) as m, (select count(*) from c) as n
values (1, 'a'), (2, 'b')
select * from (values (1, 'a'), (2, 'b'), (3, null)) x(p, q) order by p
select s.id, x.q from s join (values (1, 'one'), (2, 'two')) x(p, q) on s.k = x.p order by s.id
select id from s where k in (select p from (values (1), (2)) x(p)) order by id
select distinct sum(k) from s
select distinct count(*), max(k) from s
select x from (select k * 2 as x from s) y where x > 4 order by x
select cast(d as varchar) as v, length(v) from s order by id
