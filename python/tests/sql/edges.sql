select x.k from (select k+1 as k, id from s) x where x.k > 3 order by id
select k as g, g as k from s order by k nulls last, g nulls last
select k % 2 as k, count(*) from s group by k order by 1, 2
select k % 2 as z, count(*) from s group by z having z = 1
select g as b, count(*) from s group by g order by b
select -k as k from s order by k + 1 limit 4
select id as k, k as id from s order by k limit 4
select id, k as d from s order by d, id limit 6
select id, d as k from s where k > 2 order by k, id
select max(k) as k from s group by g order by k
select g, max(k) as k from s group by g having k > 3 order by g
select g, max(k) as m from s group by g having m > 3 and max(d) > 5 order by g
select g, count(*) as id from s group by g order by id desc, g
select sum(k) as k from s
select k, sum(k) as d from s group by k having d > 2 order by k
select distinct k as id from s order by id
select distinct g, length(g) as l from s order by l, g
select distinct on (g) g from s
select id, i64 from s order by i64 limit 4
select id, i64 from s order by i64 desc limit 4
select id, i64 from s order by i64 desc nulls last limit 4
select id, f from s order by f desc limit 4
select id, f from s order by f limit 4
select id, f from s order by f desc nulls last limit 4
select id, f from s order by f nulls first limit 4
select f from s order by f desc limit 4 offset 2
select f from s where f is not null order by f desc limit 2
select d from s order by d limit 30
select d from s order by d desc limit 3
select d from s order by d desc nulls last limit 3
select ts from s order by ts desc nulls last limit 3
select day from s order by day limit 3
select b from s order by b limit 5
select b from s order by b desc nulls last limit 5
select u8 from s order by u8 desc nulls last limit 2
select g, sum(i64) x from s group by g order by x
select g, sum(i64) x from s group by g order by x desc nulls last limit 2
select g, sum(i64) x from s group by g having x > 0 order by g
select avg(d), avg(e), avg(d * e) from s
select sum(d) / 7 from s
select round(sum(d) / 7, 2), round(avg(d), 1) from s
select round(d / 3, 2) from s order by id
select round(d * 1.5, 1) from s order by id
select cast(d * 1.5 as decimal(10,1)) from s order by id
select cast(d / 3 as decimal(10,3)) from s order by id
select cast(avg(d) as decimal(10,2)) from s
select d + k, d * k, d - k, d + f, d * i8 from s order by id
select e * 0.1, e + 0.0001, e - 1, 1 - e, 0.5 * e from s order by id
select d / 0, d % 0.5, -d % 3 from s order by id
select k / 2, k / 2.0, k * 0.5, k + 0.5 from s order by id
select k = 1.0, k < 1.5, k + 0.0 = k from s order by id
select d = 10.250, d = cast(10.25 as double), d < 0.1 + 0.2 from s order by id
select f = 0.1, f = cast(0.1 as double), f < 0.30000000000000004, f <= 0.3 from s order by id
select f = 1, f > 0, f = k, f = d from s order by id
select abs(d), abs(f), abs(k) from s order by id
select sum(f) filter (where abs(f) < 100), avg(f) filter (where abs(f) < 100) from s group by b order by b
select c.cid from c where c.rank in (select rank from c where rank is null)
select c.cid from c where c.rank not in (select rank from c where rank is null)
select c.cid from c where c.rank not in (select rank from c where false) order by cid
select c.cid from c where c.rank in (select 1 from o) order by cid
select c.cid, c.rank in (select m from n) from c order by cid
select c.cid, c.rank in (select a from n) from c order by cid
select c.cid, c.rank in (select a from n where false) from c order by cid
select c.cid, c.rank not in (select m from n) from c order by cid
select c.cid, exists (select 1 from n where n.m = c.rank) from c order by cid
select c.cid, (select max(m) from n where n.m = c.rank) from c order by cid
select c.cid, (select count(a) from n where n.m = c.rank) from c order by cid
select c.cid, (select count(*) + 1 from n where n.m = c.rank) from c order by cid
select c.cid, (select sum(m) from n where n.a = c.rank) from c order by cid
select c.cid, (select coalesce(sum(m), -1) from n where n.m = c.rank) from c order by cid
select c.cid from c where (select count(*) from n where n.m = c.rank) = 0 order by cid
select c.cid from c where (select count(*) from s where s.k = c.cid and s.b) >= 1 order by cid
select c.cid from c where c.rank < (select max(s.k) from s where s.g = c.region) order by cid
select c.cid from c where 2 <= (select count(distinct s.g) from s where s.k = c.cid) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.g = c.region) order by cid
select c.cid from c where not exists (select 1 from s where s.k = c.cid and s.g <> c.region) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.d > c.credit) order by cid
select c.cid from c where not exists (select 1 from s where s.k = c.cid and s.d >= c.credit) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.f <> c.w) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.f > c.w) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.f < c.w) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.t > c.name) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.t <> c.name) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid and s.day < c.since) order by cid
select c.cid from c where exists (select count(*) from s where s.k = c.cid) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid group by s.g) order by cid
select c.cid from c where exists (select 1 from s where s.k = c.cid limit 1) order by cid
select c.cid from c where exists (select distinct s.g from s where s.k = c.cid order by s.g) order by cid
select c.cid from c, r where c.region = r.region and exists (select 1 from s where s.k = c.cid and s.g = r.region)
  order by cid
select s.id from s where s.k = 2 and s.id in (select max(id) from s group by g) order by id
select s.id from s where s.id in (select max(id) from s) order by id
select s.id from s where (select max(cid) from c) > s.k order by id
select s.id from s where s.g = (select region from c where cid = 3) order by id
select s.id from s where s.g = (select region from c where cid = 100) order by id
select s.id from s where s.day > (select min(since) from c) order by id
select s.id from s where s.d > (select max(credit) from c where region = 'north') order by id
select id from s where g in (select region from c) and k in (select rank from c) order by id
select count(*) from s where g in (select region from c where region is not null) or k not in (select cid from c)
select (select count(*) from s) + (select count(*) from c) from o
select id + (select max(cid) from c) from s order by id limit 2
select g, count(*) + (select count(*) from c) from s group by g order by g
select g, count(*) from s where k > (select avg(k) from s) group by g having count(*) > (select min(rank) from c)
  order by g
select sum(n) from (select count(*) n from s group by g having count(*) > 2) x
select x.g, y.g from (select g, count(*) n from s group by g) x join (select g, count(*) n from s where b group by g)
  y on x.g = y.g order by 1
select x.g, y.n from (select g, count(*) n from s group by g) x left join (select g, count(*) n from s where b group
  by g) y on x.g = y.g order by 1
select x.id from (select id, k from s where b) x left join c on x.k = c.cid where c.cid is null order by 1
select x.id, x.kk from (select id, coalesce(k, -1) kk from s) x where kk = -1 order by id
select x.id from (select id, k from s limit 5) x where x.id < 100 order by id
select count(*) from (select id from s order by d desc nulls last limit 5) x
select sum(id) from (select id from s order by d desc nulls last, id limit 5) x
select sum(id) from (select id from s order by d desc nulls last, id limit 5 offset 2) x
select count(*), sum(k) from (select distinct k from s) x
select g, count(*) from (select distinct g, k from s) x group by g order by g
select g, sum(n) from (select g, k, count(*) n from s group by g, k) x group by g order by g
select a.g, sum(a.d) from s a join c on a.k = c.cid where c.rank is not null group by a.g order by 1
select a.g, sum(c.credit), count(c.credit), count(*) from s a left join c on a.k = c.cid group by a.g order by 1
select c.region, count(*) from s a left join c on a.k = c.cid group by c.region order by 1
select c.region, count(*) from s a left join c on a.k = c.cid and c.cid > 100 group by c.region order by 1
select c.rank, count(*) from s a left join c on a.k = c.cid group by c.rank order by 1
select c.since, max(a.d) from s a left join c on a.k = c.cid group by c.since order by 1
select c.credit, count(*) from s a left join c on a.k = c.cid group by c.credit order by 1
select c.w, count(*) from s a left join c on a.k = c.cid group by c.w order by 1
select coalesce(c.name, 'none') n, count(*) from s a left join c on a.k = c.cid group by n order by n
select coalesce(c.rank, 0) + a.k from s a left join c on a.k = c.cid order by a.id
select case when c.cid is null then 'x' else c.name end from s a left join c on a.k = c.cid order by a.id
select a.id from s a left join c on a.k = c.cid where c.name like '%a%' or c.name is null order by a.id
select a.id from s a left join c on a.k = c.cid where not (c.rank > 2) order by a.id
select a.id from s a left join c on a.k = c.cid where coalesce(c.rank, 5) > 2 order by a.id
select a.id, c.cid from s a left join c on a.k + 1 = c.cid order by a.id
select a.id, c.cid from s a left join c on a.k = c.cid + 1 order by a.id
select a.id, c.cid from s a join c on a.k = c.cid + 1 order by a.id
select a.id, c.cid from s a join c on c.cid = a.k and c.region = a.g order by a.id
select a.id, c.cid from s a left join c on c.cid = a.k and c.region = a.g order by a.id
select a.id, c.cid from s a join c on a.k = c.cid where a.g = c.region or a.g is null order by a.id
select a.id, c.cid from s a join c on a.k = c.cid and a.g <> c.region order by a.id
select a.id, c.cid from s a join c on a.k = c.cid and a.d > c.credit order by a.id
select a.id, b.id from s a join s b on a.id = b.id + 1 order by 1
select a.id, b.d from s a join s b on a.id = b.id where a.d <> b.d or b.d is null order by 1
select a.id, b.cid, d2.cid from s a left join c b on a.k = b.cid left join c d2 on a.i8 = d2.cid order by 1
select a.id, n.m from s a left join n on a.k = n.a order by 1
select a.id, n.m from s a join n on a.k = n.m order by 1
select a.id, n.a, n.x, n.s from s a join n on a.k = n.m order by 1
select e.id, s.id from e join s on e.k = s.id
select c.cid, e.id from c left join e on c.cid = e.k order by 1
select c.cid, count(e.id) from c left join e on c.cid = e.k group by c.cid order by 1
select sum(s.d) from s join e on s.k = e.k
select g, sum(d) from s where g in (select g from e) group by g
select count(*) from e e1 join e e2 on e1.id = e2.id
select k, count(*) from e group by k having count(*) > 0
select max(k), g from e group by g order by g
select avg(k) + 1, coalesce(sum(k), 0), count(*) * 2 from e
select case when count(*) = 0 then 'none' else 'some' end from e
select id from e union all select id from s where id < 3 order by id
select id from s where id < 3 union select id from e order by id
select id from s where id < 3 except select id from e order by id
select id from s intersect select id from e
select g, d from s union select g, d from e order by g, d
select t from e union select g from s order by t
select min(t), max(t), count(distinct t), count(distinct g) from e
select s.g, x.n from s left join (select g, count(*) n from e group by g) x on s.g = x.g order by s.id
select t = '' from s order by id
select t, length(t) = 0 from s order by id
select coalesce(t, '') = '' from s order by id
select nullif(t, '') from s order by id
select t || '' = t from s order by id
select upper(lower(t)) = upper(t) from s order by id
select trim(t) = t from s order by id
select count(distinct lower(t)), count(distinct upper(t)), count(distinct trim(t)) from s
select lower(t), count(*) from s group by lower(t) having count(*) > 1 order by 1
select min(lower(t)), max(upper(t)), min(reverse(t)) from s
select g, min(t), max(t) from s group by g order by g
select g, min(upper(t)), max(lower(t)) from s group by g order by g
select t from s where t in ('abc', 'ABC', '') order by id
select t from s where lower(t) in ('abc') order by id
select t from s where t between 'a' and 'b' order by id
select t from s where t > g order by id
select t from s where t = g or t <> g order by id
select greatest(t, g, 'm') from s order by id
select case when t > 'b' then t else g end x, count(*) from s group by x order by x
select replace(replace(t, 'a', 'x'), 'x', 'a') from s order by id
select id from s where t like 'a%' and t not like '%b%' order by id
select id from s where 'abc' like 'a%' order by id limit 1
select id from s where regexp_matches(t, '(?i)ABC') order by id
select id from s where t similar to 'x+' order by id
select day, ts from s where ts >= day order by id
select day from s where day > date '2024-01-01' - interval 1 month order by id
select day from s where day + interval 1 month > ts order by id
select day from s where day + interval 1 month = date '2024-02-29' order by id
select day from s where extract(year from day) = 2024 and extract(month from day) in (1, 2) order by id
select count(*) from s where day is null and ts is null
select min(day), max(ts), min(ts) from s where b
select ts from s where ts = timestamp '2024-02-29 05:07:11.25' order by id
select ts from s where ts between '2024-01-01' and '2024-05-01 12:00:00' order by id
select hour(ts), count(*) from s group by 1 order by 1
select date_trunc('hour', ts) = ts from s order by id
select cast(ts as date) - day from s order by id
select day - cast('2024-01-01' as date) > 0 from s order by id
select year(day) - year(since) from s join c on s.k = c.cid order by s.id
select coalesce(day, since) from s join c on s.k = c.cid order by s.id
select coalesce(ts, since) from s join c on s.k = c.cid order by s.id
select greatest(day, since) from s join c on s.k = c.cid order by s.id
select nullif(day, since) from s join c on s.k = c.cid order by s.id
select case when b then day else since end from s join c on s.k = c.cid order by s.id
select case when b then ts else since end from s join c on s.k = c.cid order by s.id
select case when b then d else credit end from s join c on s.k = c.cid order by s.id
select case when b then k else w end from s join c on s.k = c.cid order by s.id
select coalesce(d, credit, f) from s join c on s.k = c.cid order by s.id
select least(d, credit), greatest(f, w), least(i8, u8) from s join c on s.k = c.cid order by s.id
select SUM(D) from S
select "id" from s where "G" = 'north' order by ID
select s."k", S.G from S order by s.id limit 3
select id as "Big Name" from s order by "Big Name" limit 1
select count(*) as "count" from s
select k, k from s order by id limit 1
select s.k, c.cid as k from s join c on s.k = c.cid order by s.id limit 1
select k as "k:1", k from s limit 1
select sum(k) + 0.5, sum(d) + sum(k), sum(d) * sum(k), sum(f) + sum(d) from s where abs(f) < 10
select max(d) * 2, max(k) / 2, min(d) % 3, abs(min(d)), -max(d) from s
select sum(k) % 5, sum(k) // 5, -sum(k) // 5, -sum(k) % 5 from s
select round(avg(k), 2), floor(avg(k)), ceil(avg(k)), cast(avg(k) as integer) from s
select cast(sum(k) as double), cast(sum(d) as bigint), cast(count(*) as decimal(10,2)) from s
select year(max(day)), max(day) + 1, max(day) = date '2024-12-30' from s
select upper(max(g)), length(min(t)), max(g) || '!' from s
select max(g) = 'west', max(k) in (9, 10), max(k) between 1 and 9, max(k) is null from s
select g, max(k) > 5 and count(*) > 3 from s group by g order by g
select g, nullif(count(*), 4), greatest(count(*), 5) from s group by g order by g
select g, k + count(*) from s group by g, k order by g, k
select k + 1 + count(*) from s group by k + 1 order by k + 1
select count(*) from s group by k + 1 having k + 1 > 3 order by k + 1
select g, sum(d) from s group by g order by sum(d) / count(*) desc nulls last, g
select g, sum(d) from s group by g order by g desc nulls last limit 2
select g, b, sum(d) from s group by b, g order by b desc nulls last, g nulls first
select upper(g), sum(d) from s group by g order by g
select g, upper(g) || count(*) from s group by g order by g
select length(g), upper(g), count(*) from s group by g order by g
