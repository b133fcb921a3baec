select sum(f4), avg(f4), min(f4), max(f4) from w
select f4, count(*) from w group by f4 order by f4
select i from w where f4 in (0.1, 0.225, 1.1) order by i
select i from w where f4 = 1.1 order by i
select i from w where f4 = cast(1.1 as double) order by i
select i from w where f4 < 1.1 order by i
select u64 + 1, u64 * 2, u64 % 7 from w order by i
select ub, count(*) from w group by ub order by ub
select i from w where ub > 9223372036854775800 order by i
select far / 3, far // 7, far % 7 from w order by i
select far // 1000 * 2 from w order by i
select cast(far as double) * 100 from w order by i
select cast(ns as date), count(*) from w group by 1 order by 1
select ms, sec, ms > sec from w order by i limit 100
select i from w where ms > timestamp '2023-11-14 22:00:00' order by i
select i from w where ms = '2023-11-14 22:13:20' order by i
select i from w where sec < timestamp '1970-01-01 00:00:00.5' order by i
select extract(hour from ms), extract(day from sec), second(ms), count(*) from w group by 1, 2, 3 order by 1, 2, 3
select date_trunc('day', sec), count(*) from w group by 1 order by 1
select ms + interval 1 month from w order by i limit 50
select sec - interval 90 minute from w order by i limit 50
select coalesce(ms, sec) from w order by i limit 100
select case when tf then ms else sec end from w order by i limit 100
select greatest(ms, sec), least(ms, sec) from w order by i limit 100
select nullif(ms, sec) from w order by i limit 10
select epoch(ms), epoch(sec) from w order by i limit 10
select sum(d18), avg(d18), min(d18), max(d18) from w
select d18 + d4, d18 - d4, d18 * d4 from w order by i
select d18 / d4 from w where d4 <> 0 order by i
select d18 % d4 from w where d4 <> 0 order by i
select round(d18, 2), round(d18), cast(d18 as decimal(18,3)) from w order by i
select sum(d18 * d4) from w
select d4 + d4, d4 * 100, d4 * 0.01 from w order by i
select d4, count(*) from w group by d4 order by d4
select i16 * i16 from w where abs(i16) < 100 order by i
select sum(i16), avg(i16), sum(i16 * 1000000) from w
select i16 / d4 from w where d4 <> 0 order by i
select i16 + d4, i16 * d4, i16 - x from w order by i
select stddev(d18), variance(i16), stddev_pop(f4), var_pop(x) from w
select z, stddev(d18), variance(i16), stddev_pop(x), var_samp(u64) from w group by z order by z
select z, tf, count(*), sum(i16), avg(d4), max(x) from w group by z, tf order by z, tf
select z, tf, i16 % 5, count(*) from w group by 1, 2, 3 order by 1, 2, 3
select p, count(*), sum(d18) from w group by p order by p
select p, z, far, count(*), min(x) from w group by p, z, far order by p, z, far
select far, x, count(*) from w group by far, x order by far, x
select count(distinct x), count(distinct far), count(distinct p), count(distinct z), count(distinct f4) from w
select z, count(distinct p), count(distinct tf) from w group by z order by z
select z, count(distinct x) filter (where tf) from w group by z order by z
select p, count(*) n from w group by p having n > 5 order by n desc, p
select p, sum(d4) n from w group by p having sum(d4) > 100.5 order by p
select p, avg(d4) n from w group by p having avg(d4) > 40 order by p
select p, sum(x) n from w group by p having sum(x) > 3 and count(*) < 6 order by p
select p, max(i16) n from w group by p having max(i16) is null order by p
select p, max(i16) n from w group by p having not (max(i16) > 0) order by p
select p, min(x) from w group by p having min(x) > 0.5 or count(x) = 0 order by p
select p, sum(i16) from w group by p having sum(i16) between -5 and 5 order by p
select p, count(x) from w group by p having count(x) = 0 order by p
select dim.p, nm, i from w join dim on w.p = dim.p order by i
select nm, count(*), sum(q) from w join dim using (p) group by nm order by nm
select nm, count(*), sum(q), count(q) from w left join dim on w.p = dim.p group by nm order by nm
select i, nm from w left join dim on w.p = dim.p and q > 3 where nm is null order by i
select count(*) from w anti join dim on w.p = dim.p
select count(*) from w semi join dim on w.p = dim.p and nm like 'n1%'
select i from w where p in (select p from dim where nm = 'n3') order by i
select i from w where p not in (select p from dim where nm = 'n3') order by i
select i from w where p not in (select p from dim) and tf order by i
select i from w where exists (select 1 from dim where dim.p = w.p and dim.q < w.d4) order by i
select i from w where d4 > (select avg(q) from dim where dim.p = w.p) order by i
select dim.p, count(i), sum(d4) from dim left join w on dim.p = w.p group by dim.p order by 1
select dim.p, i from dim left join w on dim.p = w.p and w.tf order by 1, 2
select dd, sum(d4) from w join dim on w.p = dim.p where cast(ns as date) = dd group by dd order by dd
select count(*) from w join dim on w.p = dim.p and cast(w.ns as date) > dim.dd
select i from w join dim on w.p = dim.p and w.z = dim.nm
select i from w order by x desc nulls last, i limit 10
select i, x from w order by x desc, i limit 10
select i from w order by d4, i limit 7 offset 3
select i from w where tf order by far desc nulls last, p nulls first, i limit 9
select i from w order by z desc nulls last, ms, i limit 9
select i from w order by ub desc nulls last, i limit 9
select x from w order by x limit 10
select p from w where p > 1990 order by p desc limit 3
select distinct p % 10, tf from w order by 1, 2
select distinct far from w order by far desc
select distinct z, i16 // 100 from w order by 1, 2
select count(*) from (select distinct p, z from w) q
select p from w union select p from dim order by p
select p from w where tf except select p from dim order by p
select p from w intersect select p from dim order by p
select ms from w union select sec from w order by ms
select d4 from w union select q from dim order by d4
select f4 from w union select x from w order by f4
select u64 from w union select i16 from w order by u64
select z from w union all select nm from dim order by z
select count(*) from w where x between 0.2 and 0.4 and tf is not false and z in ('a', 'dd')
select count(*) from w where not (x between 0.2 and 0.4) or tf is null
select count(*) from w where (x > 0.5) = tf
select count(*) from w where x is null and p is null
select count(*) from w where z > 'a' and z <= 'dd'
select count(*) from w where case when tf then x > 0.5 when x is null then true else p < 100 end
select count(*) from w where coalesce(x, 0) < 0.1
select count(*) from w where i16 % 7 = -3
select count(*) from w where i16 in (1, 5, -7, 200, 299) or p in (7, 14)
select sum(case when x > 0.5 then 1 when x > 0.2 then 2 end) from w
select min(case when tf then z end), max(case when x > 0.9 then d18 end) from w
select z, sum(x) / count(*), sum(d4) * 1.0 / count(d4), max(x) - min(x) from w group by z order by z
select utc from w where utc is not null order by i limit 3
select extract(hour from utc) from w order by i limit 3
select cast(utc as date), count(*) from w group by 1 order by 1
select min(utc) from w
select ns > ms from w order by i limit 300
select ns = cast(ns as date) from w order by i limit 30
select hour(ns), minute(ns) from w order by i limit 30
select i from w where ns = timestamp '2023-11-14 22:13:20' order by i
