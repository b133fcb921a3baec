select distinct on (g) g, id from s order by g, id
select distinct on (g) g, id, d from s order by g desc nulls last, d desc nulls last, id
select distinct on (g, b) id from s order by g, b, id limit 5
select distinct on (g) id from s order by g nulls first, id desc limit 3 offset 1
select distinct on (k % 3) k % 3 as r, id from s order by k % 3, id
select distinct on (1) g, max_id from (select g, max(id) max_id, k from s group by g, k) x order by g, max_id desc
select count(*), sum(id) from (select distinct on (g) id, g from s order by g, id) x
select distinct on (f) f, id from s order by f, id
select distinct on (s.g) s.id, c.name from s join c on s.k = c.cid order by s.g, s.id
select g, id from s where id in (select id from (select distinct on (k) id, k from s order by k, id desc) x) order by
  id
