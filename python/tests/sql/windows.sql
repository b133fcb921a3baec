select id, row_number() over (order by id desc) as r from s order by id
select id, row_number() over (partition by g order by d desc, id) as r, count(*) over (partition by g) as n from s order by id
select id, rank() over (order by k) as r, dense_rank() over (order by k) as d, percent_rank() over (order by k) as p, cume_dist() over (order by k) as c from s order by id
select id, rank() over (partition by t order by k desc nulls first) as r, dense_rank() over (partition by t order by k nulls first) as d from s order by id
select id, ntile(4) over (order by id) as a, ntile(100) over (order by id desc) as b, ntile(3) over (partition by g order by id) as c from s order by id
select id, lag(d) over (order by id) as a, lead(d, 2) over (order by id) as b, lag(id, 1, 0) over (partition by g order by id) as c, lead(f, 1, k) over (order by id) as e from s order by id
select id, lag(g, 1, 'none') over (order by id) as a, lead(day, 1) over (partition by b order by id) as b from s order by id
select id, first_value(d) over (partition by g order by id) as a, last_value(d) over (partition by g order by id) as b, nth_value(id, 2) over (partition by g order by id) as c from s order by id
select id, last_value(g) over (order by id rows between unbounded preceding and unbounded following) as a, first_value(id) over (order by id rows between 1 following and 2 following) as b from s order by id
select id, sum(id) over (order by id) as a, sum(d) over (partition by g) as b, sum(f) over (order by id) as c, sum(k) over (order by k) as e from s order by id
select id, sum(id) over (order by id rows between 2 preceding and current row) as a, avg(d) over (order by id rows between 1 preceding and 1 following) as b, sum(f) over (order by id rows between 3 preceding and 1 preceding) as c from s order by id
select id, sum(id) over (order by id rows between current row and unbounded following) as a, sum(f) over (partition by t order by id rows between current row and unbounded following) as b from s order by id
select id, min(d) over (partition by g order by id) as a, max(d) over (partition by g) as b, min(g) over (order by id) as c, max(f) over (order by id rows 2 preceding) as e, min(day) over (order by k) as h from s order by id
select id, count(k) over (order by id) as a, count(*) over (order by id rows between 1 preceding and 1 following) as b, count(*) over () as c, avg(k) over (partition by g) as e, avg(f) over (order by k) as h from s order by id
select id, sum(id) over (order by k range between current row and unbounded following) as a, sum(id) over (order by k range between current row and current row) as b from s order by id
select id, d - avg(d) over (partition by g) as a, d / sum(d) over () as b, 1 + rank() over (order by k) * 2 as c from s order by id
select g, sum(d) as total, rank() over (order by sum(d) desc) as r, sum(sum(d)) over () as whole from s group by g order by g
select g, t, count(*) as n, row_number() over (partition by g order by count(*) desc, t) as r from s group by g, t order by g, t
select upper(g) as u, count(*) as n, rank() over (order by count(*) desc, upper(g)) as r from s group by u having n > 1 order by u
select g, count(*), rank() over (order by count(*), g) from s group by 1 order by 1
select id, g from s qualify row_number() over (partition by g order by id) = 1 order by id
select id, rank() over (order by k desc) as r from s qualify r <= 3 order by r, id
select id, k from s where b qualify count(*) over (partition by k) > 1 order by id
select id, row_number() over w as r, sum(id) over w as x from s window w as (partition by g order by id) order by id
select distinct g, count(*) over (partition by g) as n from s order by g
select id from s order by row_number() over (order by d desc nulls last, id) limit 4
select id, row_number() over (order by id) as r from s order by r desc limit 3 offset 2
select id, row_number() over () > 0 as r from e
select g, sum(id) over (partition by g) from e
select m, rank() over (order by x) as r, sum(a) over () as t, count(a) over () as c, lag(s) over (order by m) as l from n order by m
select s.id, c.name, rank() over (partition by c.name order by s.d desc, s.id) as r from s join c on s.k = c.cid order by s.id
select a.id, b.id, row_number() over (partition by a.id order by b.id) as r from s a join s b on a.k = b.k order by 1, 2
select avg(n) from (select count(*) over (partition by g) as n from s)
with r as (select id, row_number() over (partition by g order by id) as r from s) select count(*) from r where r = 1
select i, sum(far // 1000) over (partition by z order by i) as a, avg(x) over (partition by z, tf) as b, max(d18) over (partition by p order by i) as c, rank() over (order by ns, ms, i) as r from w order by i limit 500
select i, sum(x) over (order by i rows between 10 preceding and 10 following) as a, min(x) over (order by i rows between 10 preceding and 10 following) as b, first_value(z) over (partition by tf order by d4, i) as c from w order by i desc limit 500
select z, tf, sum(i16) over (partition by z), count(*) over (partition by tf, z) from w where i < 40 order by i
select f, rank() over (order by f) as a, sum(f) over (order by id) as b from s order by id
select case when row_number() over (order by id) % 2 = 0 then 'even' else 'odd' end as e, id from s order by id
select id, lag(id) over (order by id) from s union all select cid, 0 from c order by 1, 2
select id, count() over (partition by g) as n from s order by id
