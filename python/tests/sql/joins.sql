select s.id, c.name from s join c on s.k = c.cid order by s.id
select s.id, c.name from s left join c on s.k = c.cid order by s.id
select s.id, c.name from s, c where s.k = c.cid and c.rank > 1 order by s.id
select s.id, c.name from s left join c on s.k = c.cid and c.rank > 1 order by s.id
select s.id, c.name from s left join c on s.k = c.cid where c.rank > 1 order by s.id
select s.id, c.name from s left join c on s.k = c.cid where c.rank is null order by s.id
select s.id, c.name from s left join c on s.k = c.cid and s.id > 5 order by s.id
select s.id, c.name from s left join c on s.k = c.cid and s.b order by s.id
select s.id, c.name from s join c on s.k = c.cid and s.id > 5 order by s.id
select s.id, o.v from s, o order by 1
select s.id, o.v from s cross join o order by 1
select s.id, r.boss from s join r on s.g = r.region order by s.id
select s.id, r.boss from s left join r on s.g = r.region order by s.id
select s.id, r.boss from s join r on s.g = r.region and r.quota > 15 order by s.id
select s.id, s.g, r.quota from s join r on upper(s.g) = upper(r.region) order by s.id
select c.cid, r.boss from c join r using (region) order by cid
select region, c.cid from c join r using (region) order by cid
select region, c.cid from c left join r using (region) order by cid
select * from c join r using (region) order by cid
select * from c left join r using (region) order by cid
select * from c join r on c.region = r.region order by cid
select c.*, r.boss from c left join r using (region) order by cid
select r.region, c.cid from r left join c on r.region = c.region order by 1, 2
select r.region, count(*) from r left join c on r.region = c.region group by r.region order by 1
select r.region, count(c.cid), sum(c.credit) from r left join c on r.region = c.region group by r.region order by 1
select r.region, c.cid from r join c on r.region = c.region order by 1, 2
select c.cid, s.id from c join s on c.cid = s.k order by 1, 2
select c.cid, s.id from c left join s on c.cid = s.k order by 1, 2
select c.cid, s.id from c left join s on c.cid = s.k and s.b order by 1, 2
select c.cid, s.id from c left join s on c.cid = s.k and c.rank = 1 order by 1, 2
select c.cid, count(s.id), sum(s.d) from c left join s on c.cid = s.k group by c.cid order by 1
select c.name, s.g, sum(s.d) from c left join s on c.cid = s.k group by c.name, s.g order by 1, 2
select c.cid, s.id from c left join s on c.cid = s.k where s.id is null order by 1
select c.cid, s.id from s right join c on c.cid = s.k order by 1, 2
select c.cid, s.id from c right join s on c.cid = s.k order by 2
select a.id, b.id from s a join s b on a.id = b.k order by 1, 2
select a.id, b.id from s a join s b on a.k = b.id order by 1, 2
select a.id, b.id from s a left join s b on a.k = b.id and b.g = a.g order by 1, 2
select s.id, c.name, r.boss from s join c on s.k = c.cid join r on c.region = r.region order by s.id
select s.id, c.name, r.boss from s left join c on s.k = c.cid left join r on c.region = r.region order by s.id
select s.id, c.name, r.boss from s join c on s.k = c.cid left join r on s.g = r.region order by s.id
select s.id, r.boss from s left join c on s.k = c.cid join r on c.region = r.region order by s.id
select count(*) from s, c, r where s.k = c.cid and c.region = r.region and s.g = r.region
select s.id from s semi join c on s.k = c.cid order by 1
select s.id from s anti join c on s.k = c.cid order by 1
select s.id from s semi join c on s.k = c.cid and c.rank > 1 order by 1
select s.id from s anti join c on s.k = c.cid and c.rank > 1 order by 1
select s.id from s where s.k in (select cid from c) order by 1
select s.id from s where s.k not in (select cid from c) order by 1
select s.id from s where s.k in (select rank from c) order by 1
select s.id from s where s.k not in (select rank from c) order by 1
select s.id from s where s.k not in (select rank from c where rank is not null) order by 1
select s.id from s where not (s.k in (select rank from c)) order by 1
select s.id, s.k in (select rank from c) as x from s order by 1
select s.id, s.k not in (select cid from c) as x from s order by 1
select s.id from s where s.k in (select cid from c) or s.b order by 1
select s.id from s where s.g in (select region from r where quota > 15) order by 1
select s.id from s where s.g not in (select region from c) order by 1
select s.id from s where s.d in (select credit from c) order by 1
select s.id from s where s.f in (select w from c) order by 1
select s.id from s where s.f not in (select w from c where w is not null) order by 1
select s.id from s where s.day in (select since from c) order by 1
select s.id from s where s.ts in (select since from c) order by 1
select s.id from s where s.k in (select c.cid from c group by c.cid having count(*) = 1) order by 1
select s.id from s where s.k = (select max(cid) from c where c.region = s.g) order by 1
select s.id from s where s.k > (select avg(cid) from c where c.region = s.g) order by 1
select s.id, (select count(*) from c where c.cid = s.k) as n from s order by 1
select s.id, (select max(name) from c where c.cid = s.k) as n from s order by 1
select s.id, (select sum(credit) from c where c.region = s.g) as n from s order by 1
select s.id, coalesce((select sum(credit) from c where c.region = s.g), 0) as n from s order by 1
select s.id from s where exists (select 1 from c where c.cid = s.k) order by 1
select s.id from s where not exists (select 1 from c where c.cid = s.k) order by 1
select s.id from s where exists (select 1 from c where c.cid = s.k and c.rank > 1) order by 1
select s.id from s where exists (select 1 from c where c.region = s.g and c.cid <> s.k) order by 1
select s.id from s where exists (select 1 from c where c.region = s.g and c.cid < s.k) order by 1
select s.id from s where exists (select 1 from c where c.cid = s.k) = s.b order by 1
select s.id from s where s.k = any (select cid from c) order by 1
select s.id from s where s.k <> all (select cid from c) order by 1
select s.id from s where s.d > (select avg(d) from s) order by 1
select g, sum(d) from s group by g having sum(d) > (select avg(d) from s) order by 1
select (select max(d) from s) - (select min(d) from s) from o
select (select max(day) from s) from o
select (select t from s where id = 1) from o
select (select b from s where id = 1) from o
select x.g, x.n from (select g, count(*) n from s group by g) x where x.n > 2 order by 1
select max(n) from (select g, count(*) n from s group by g) x
select x.g, c.cid from (select g, count(*) n from s group by g) x join c on x.g = c.region order by 1, 2
select x.k2 from (select k * 2 as k2 from s where k is not null) x where x.k2 > 4 order by 1
select avg(x.m) from (select g, max(d) m from s group by g) x
select * from (select g, k from s order by k nulls last limit 3) x order by k, g
select * from (select distinct g from s) x order by g
select count(*) from (select id from s union all select cid from c) x
with a as (select g, sum(d) t from s group by g), b as (select max(t) m from a) select a.g from a, b where a.t = b.m
with a as (select g, sum(d) t from s group by g), b as (select max(t) m from a) select a.g from a join b on a.t = b.m
with a as (select * from s where k > 2) select g, count(*) from a group by g order by g
with a(x, y) as (select id, k from s) select x from a where y = 2 order by x
with a as (select k, count(*) n from s group by k) select s.id, a.n from s join a on s.k = a.k order by s.id
with a as (select k, count(*) n from s group by k) select s.id, a.n from s left join a on s.k = a.k order by s.id
with a as (select 1 as x) select * from a
select 1
select 1 + 1 as two, 'a' as t
select id from s union select cid from c order by id
select id from s union all select cid from c order by id
select k from s union select cid from c order by k
select k from s except select cid from c order by k
select k from s intersect select rank from c order by k
select k from s except all select cid from c order by k
select k from s intersect all select rank from c order by k
select g from s union select region from c order by g
select g, k from s intersect select region, cid from c order by g, k
select d from s union select credit from c order by d
select d from s union select f from s where f < 100 order by d
select k from s union select d from s order by k
select k from s union all select null from o order by k
select day from s union select since from c order by day
select day from s union select ts from s order by day
select t from s except select g from s order by t
select f from s union select w from c order by f
select f from s intersect select w from c order by f
select k from s where k < 3 union select cid from c where cid > 5 union select 100 from o order by k
(select k from s order by k limit 2) union all (select cid from c order by cid desc limit 2) order by k
select k from s union select cid from c limit 3
select count(*) from s where k in (select k from s union select cid from c)
select id as a from s union select cid as b from c order by a limit 3
select b from s union select b from s order by b
select case when k > 2 then 'big' when k is null then 'none' else 'small' end as c, count(*) from s group by c order
  by c
select case when k > 2 then d end from s order by id
select case when k > 2 then d else 0 end from s order by id
select case when k > 2 then d else f end from s order by id
select case when k > 2 then k else d end from s order by id
select case k when 1 then 'one' when 2 then 'two' end from s order by id
select case k when null then 'n' else 'x' end from s order by id
select case when b then g else t end from s order by id
select case when null then 1 else 2 end from o
select case when id = 1 then null else day end from s order by id
select sum(case when b then 1 else 0 end), sum(case when b then d end) from s
select count(case when b then 1 end) from s
select coalesce(k, 0), coalesce(d, 0), coalesce(d, k), coalesce(g, t, '?') from s order by id
select coalesce(null, k) from s order by id
select coalesce(k, d, f) from s order by id
select ifnull(k, 0) from s order by id
select nullif(k, 2), nullif(d, 10.25), nullif(g, 'north'), nullif(f, 0) from s order by id
select greatest(k, 2), least(k, 2), greatest(k, d), least(d, e), greatest(k, null) from s order by id
select greatest(f, 1.0), least(f, 1.0) from s order by id
select greatest(t, g), least(t, g) from s order by id
select greatest(day, date '2020-01-01') from s order by id
select if(k > 2, 'a', 'b') from s order by id
select id from s where t like 'a%' order by id
select id from s where t like '%b%' order by id
select id from s where t like 'a_b' order by id
select id from s where t like 'a\%b' order by id
select id from s where t like 'a\%b' escape '\' order by id
select id from s where t like 'a$%b' escape '$' order by id
select id from s where t like 'a\\b' order by id
select id from s where t like '' order by id
select id from s where t like '%' order by id
select id from s where t not like '%a%' order by id
select id from s where t ilike '%A%' order by id
select id from s where t ilike 'äÖß' order by id
select id from s where t ilike 'ÉCLAIR' order by id
select id from s where t like '___' order by id
select id from s where t similar to '(abc)+' order by id
select id from s where regexp_matches(t, '^[a-c]+$') order by id
select id from s where t ~ 'b' order by id
select upper(t), lower(t), length(t), reverse(t) from s order by id
select substring(t, 2), substring(t, 2, 2), substring(t, -2), substring(t, 0, 2), substr(t, -3, 2) from s order by id
select substring(t from 2 for 3) from s order by id
select left(t, 2), right(t, 2), left(t, -1), right(t, -1), left(t, 0), right(t, 0) from s order by id
select trim(t), ltrim(t), rtrim(t), trim(t, 'a') from s order by id
select trim(both 'a' from t), trim(leading 'a' from t) from s order by id
select replace(t, 'a', 'b'), replace(t, '', 'x'), replace(t, 'abc', '') from s order by id
select concat(t, g), concat(t, '-', g), t || g, concat_ws('-', t, g) from s order by id
select concat('a', null, t) from s order by id
select t || null from s order by id
select strpos(t, 'b'), instr(t, 'c'), position('b' in t) from s order by id
select contains(t, 'b'), starts_with(t, 'a'), ends_with(t, 'c'), prefix(t, 'a'), suffix(t, 'c') from s order by id
select lpad(t, 5, '*'), rpad(t, 5, '*') from s order by id
select repeat(t, 2) from s order by id
select split_part(t, 'b', 1) from s order by id
select md5(t) from s order by id
select strlen(t), bit_length(t) from s order by id
select translate(t, 'abc', 'xyz') from s order by id
select length(g) + length(t) from s order by id
select upper(g), count(*) from s group by upper(g) order by 1
select length(t), count(*) from s group by 1 order by 1
select substring(t, 1, 1) as c, count(*), sum(d) from s group by c order by c
select k + 1 as kk, count(*) from s group by k + 1 order by kk
select k + 1, count(*) from s group by k order by k
select k % 2 = 0, count(*) from s group by 1 order by 1
select d > 5, sum(d) from s group by d > 5 order by 1
select round(f, 0), count(*) from s where abs(f) < 100 group by 1 order by 1
select f, count(*) from s group by f order by f
select d, count(*) from s group by d order by d
select day, count(*) from s group by day order by day
select ts, count(*) from s group by ts order by ts
select b, count(*) from s group by b order by b
select g, b, max(ts), min(ts), max(day) from s group by g, b order by g, b
select year(day), count(*) from s group by year(day) order by 1
select date_trunc('month', day), count(*) from s group by 1 order by 1
select g, sum(k), avg(k), sum(f) filter (where f between -10 and 10), count(*) filter (where b) from s group by g
  order by g
select g, stddev(k), variance(d), stddev_pop(k), var_pop(d), var_samp(k), stddev_samp(d) from s group by g order by g
select sum(distinct k), avg(distinct k), count(distinct k), min(distinct k) from s
select g, sum(distinct k), avg(distinct d) from s group by g order by g
select sum(distinct d) from s
select sum(k) + count(*), sum(k) / count(*), sum(d) / count(*), sum(d) * 2 from s
select g, sum(d) / sum(k) from s group by g order by g
select g, max(d) - min(d), round(avg(d), 2) from s group by g order by g
select g, coalesce(sum(k), 0) from s group by g order by g
select g, case when count(*) > 3 then 'many' else 'few' end from s group by g order by g
select count(b), sum(cast(b as int)) from s
select sum(b) from s
select avg(cast(b as int)) from s
select count_if(k > 2) from s
select sum(if(k > 2, 1, 0)) from s
select min(b), max(b) from s
