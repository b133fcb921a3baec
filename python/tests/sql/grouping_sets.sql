select g, count(*) from s group by rollup (g) order by g nulls last, 2
select g, t, count(*), sum(d), avg(f), min(day) from s group by rollup (g, t) order by 1, 2, 3
select g, t, count(*) as n from s group by cube (g, t) order by n desc, g, t
select g, t, k, count(*) from s group by grouping sets ((g, t), (g), (k), ()) order by 1, 2, 3, 4
select g, b, t, count(*) from s group by g, rollup (b, t) order by 1, 2, 3, 4
select g, b, count(*) from s group by rollup (g), cube (b) order by 1, 2, 3
select g, t, b, count(*) from s group by rollup ((g, t), b) order by 1, 2, 3, 4
select g, t, grouping(g), grouping(g, t), grouping(t) + 1, count(*) from s group by rollup (g, t) order by 4, 1, 2
select g, count(*) from s where id > 3 group by rollup (g) having count(*) > 1 order by g, 2
select g, count(*) as n from s group by rollup (g) having n > 2 and grouping(g) = 0 order by n, g
select case when grouping(g) = 1 then 'all' else g end as what, sum(id) from s group by rollup (g) order by 1, 2
select g, sum(id) from s group by rollup (g) order by sum(id) desc, g limit 3
select g, sum(id) from s group by rollup (g) order by max(id) - min(id), 2, g nulls first
select upper(g) as u, count(*) from s group by rollup (u) order by u, 2
select upper(g), count(*) from s group by rollup (upper(g)) order by 1, 2
select upper(g), count(*) from s group by rollup (1) order by 1, 2
select year(day) as y, month(day) as m, sum(d) from s group by rollup (y, m) order by y, m, 3
select count(*), sum(id) from e group by rollup (g)
select g, count(*), sum(id) from e group by grouping sets ((g), ())
select g, count(*) from e group by grouping sets ((g))
select g from s group by rollup (g) order by g
select distinct count(*) as n from s group by cube (g, t) order by n
select g, count(distinct k), sum(distinct id), stddev(f) from s group by rollup (g) order by 1, 2
select count(*), g from s group by grouping sets ((g), (g)) order by 2, 1
select a.g, c.name, count(*) from s a join c on a.k = c.cid group by rollup (a.g, c.name) order by 1, 2, 3
select s.g, count(g) from s group by rollup (g) order by 1, 2
select n from (select g, count(*) as n from s group by rollup (g)) where n > 2 order by n
select x, sum(m) from n group by rollup (x) order by 1, 2
select g, sum(id) filter (where b) as f, count(*) from s group by cube (g) order by 1, 2, 3
select g || '!' as h, count(*) from s group by rollup (g) order by h, 2
select z, tf, count(*), sum(i), sum(d18) from w group by cube (z, tf) order by 1, 2, 3
select g, count(*) from s group by rollup (g) union all select region, quota from r order by 1, 2
select coalesce(g, 'z') as z, g, count(*) from s group by rollup (coalesce(g, 'z'), g) order by 1, 2, 3
select k > 2 as o, k, count(*) from s group by grouping sets ((k > 2), (k, k > 2)) order by 1, 2, 3
select year(day) as y, count(*) from s group by rollup (day) order by y, 2
select g, count(*) from s group by rollup (g) having upper(g) = 'NORTH' or g is null order by g, 2
select day as dy, count(*) from s group by cube (dy, g) having year(dy) > 2000 and grouping(g) = 1 order by 1, 2
select b, count(*) from s group by rollup (b) having b
select region, count(*) from c group by rollup (region) having count(*) < (select sum(quota) from r where region = 'west') order by 1, 2
select g, (select max(cid) from c) as m, count(*) from s group by rollup (g) order by 1, 2, 3
select g as g, count(*) from (select upper(g) as g from s) group by rollup (g) having g <> 'NORTH' order by 1, 2
select region, count(*) from c full join r using (region) group by rollup (region) having region > 'f' order by 1, 2
