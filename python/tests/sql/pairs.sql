select a.id, b.id from s a join s b on a.k = b.k order by 1, 2
select a.id, b.id from s a, s b where a.k = b.k and a.g = b.g order by 1, 2
select a.id, b.id from s a join s b on a.g = b.g and a.id < b.id order by 1, 2
select a.g, count(*), sum(b.d), min(b.f) from s a join s b on a.g = b.g group by a.g order by 1
select count(*) from s a join s b on a.k = b.k
select count(*) from s a join s b on a.k = b.k where a.id > 3 and b.id < 7 or a.b
select a.id, b.id, c.name from s a join s b on a.k = b.k join c on a.k = c.cid order by 1, 2
select a.id, b.id, x.id from s a, s b, s x where a.k = b.k and b.g = x.g order by 1, 2, 3
select a.id, b.id, r.boss from s a join s b on a.k = b.k left join r on b.g = r.region order by 1, 2
select a.id, b.id from s a join s b on a.k = b.k semi join r on b.g = r.region order by 1, 2
select a.id, b.id from s a left join s b on a.k = b.k and a.id < b.id order by 1, 2
select a.id, b.id from s a left join s b on a.k = b.k and b.b order by 1, 2
select a.id, b.id from s a left join s b on a.k = b.k and a.b where a.id > 2 order by 1, 2
select a.id, x.cid, b.id from s a join c x on a.k = x.cid left join s b on b.g = a.g order by 1, 2, 3
select a.id, b.id from s a right join s b on a.k = b.k and a.f > b.f order by 1, 2
select a.id, b.id from s a full join s b on a.k = b.id order by 1, 2
select a.id, b.id from s a full join s b on a.k = b.k and a.id < 5 and b.id > 2 order by 1, 2
select a.id, b.id from s a full join s b on a.id < b.k order by 1, 2
select s.id, c.cid, c.name from s full join c on s.k = c.cid order by 1, 2
select s.id, c.cid from s full outer join c on s.k = c.cid and c.rank > 1 order by 1, 2
select s.id, c.cid from s full join c on s.k = c.cid where c.cid is null or s.id is null order by 1, 2
select count(*), count(s.id), count(c.cid), sum(s.d) from s full join c on s.k = c.cid
select region, c.cid, r.boss from c full join r using (region) order by 1, 2
select * from c full join r using (region) order by region, cid
select c.*, r.* from c full join r on c.region = r.region order by cid, r.region
select region, count(*) from c full join r using (region) group by region order by 1
select region, cid from r right join c using (region) order by 1, 2
select s.id, c.name, r.boss from s left join c on s.k = c.cid full join r on c.region = r.region order by 1, 3
select s.id, c.cid, r.region from s full join c on s.k = c.cid full join r on c.region = r.region order by 1, 2, 3
select s.id, c.cid, r.region from s full join c on s.k = c.cid join r on c.region = r.region order by 1, 2, 3
select o.v, c.cid, r.boss from o, c full join r on c.region = r.region order by 2, 3
select e.id, c.cid from e full join c on e.k = c.cid order by 2
select e.id, c.cid from c full join e on e.k = c.cid order by 2
select a.id, b.id from e a full join e b on a.k = b.k
select a.id, b.id from e a join s b on a.k = b.k
select a.m, b.m from n a full join n b on a.a = b.a order by 1, 2
select a.m, b.m from n a full join n b on a.s = b.s and a.m = b.m order by 1, 2
select count(*) from n a join n b on a.x = b.x
select a.id, b.id from s a full join s b on a.f = b.f order by 1, 2
select a.id, b.id from s a full join s b on a.d = b.k order by 1, 2
select a.id, b.id from s a full join s b on a.day = b.ts order by 1, 2
select a.id, b.id from s a join s b on a.g = b.g and a.t = b.t and a.b = b.b order by 1, 2
select a.id, r.region from s a full join r on upper(a.g) = upper(r.region) order by 1, 2
select g, n from (select a.g as g, count(*) as n from s a join s b on a.k = b.k group by a.g) order by 1
select x + y as z, count(*) from (select a.id as x, b.id as y from s a join s b on a.k = b.k) group by z order by z
select distinct a.g, b.t from s a join s b on a.k = b.k order by 1, 2
select distinct on (a.g) a.g, b.id from s a join s b on a.k = b.k order by a.g, b.id desc
select a.g as h, count(*) as n from s a join s b on a.k = b.k group by h having n > 3 and max(b.id) > 2 order by n desc, h
select a.g, sum(b.id) filter (where b.b) from s a join s b on a.k = b.k group by all order by all
select a.id as least from s a full join s b on a.k = b.k where a.id > 3 group by a.id having count(*) > 1 order by a.id + 1 desc
with x as (select a.k, b.id from s a full join s b on a.k = b.id) select count(*), sum(x.id) from x where k in (select cid from c)
select a.i, b.i from w a join w b on a.far = b.far and a.i < 20 and b.i < 30 order by 1, 2
select count(*), sum(a.i), sum(b.x) from w a join w b on a.ms = b.ms and a.z = b.z
select count(*), sum(a.i), sum(b.i) from w a full join w b on a.p = b.p and a.d4 = b.d4
select count(*), sum(dim.p), sum(w.i) from w full join dim on w.p = dim.p
select s.id, c.cid from s left join c on s.k = c.cid and s.d < c.credit left join r on s.g = r.region where r.quota > 5 order by 1, 2
select a.id, b.id from (select * from s where b) a full join (select * from s where id < 6) b on a.k = b.k order by 1, 2
select a.id, b.id from s a, c, s b where a.k = c.cid and b.k = c.cid order by 1, 2
select c.cid, count(*) from c, s a, s b where a.k = c.cid and b.k = c.cid group by c.cid order by 1
select count(*) from s a, s b, s x, s y where a.k = b.k and b.g = x.g and x.t = y.t
select a.id, b.id, x.id from s a left join s b on a.k = b.k left join s x on b.g = x.g and x.id < 5 order by 1, 2, 3
select a.id, b.id, x.id from s a full join s b on a.k = b.k full join s x on b.g = x.g and x.id < 5 order by 1, 2, 3
select * from s a join s b using (k, g) order by a.id, b.id
select k, a.id, b.id from s a full join s b using (k) where k > 1 order by 1, 2, 3
select case when a.id is null then 'only b' when b.id is null then 'only a' else 'both' end as w, count(*) from s a full join s b on a.k = b.id group by w order by w
select count(*) from s where id in (select a.id from s a join s b on a.g = b.g and a.id <> b.id)
select a.id from s a where exists (select 1 from s x join s y on x.g = y.g where x.id = a.k) order by 1
select a.id, (select count(*) from s x join s y on x.g = y.g where x.k = a.k) as n from s a order by 1
select id from s a join c on a.k = c.cid join r on r.region = a.g order by id
select id, name from s full join c on k = cid order by id, name
select upper(g) as u, name from s full join c on k = cid order by u, name, id
select max(name) as m, g from s full join c on k = cid group by g having max(name) > 'a' order by g
select s.id, c.cid from s left join c on s.k = c.cid and s.d < c.credit order by 1, 2
select count(*), count(x), count(y) from (select a.id as x, b.id as y from s a full join s b on a.k = b.id)
select x, y from (select a.id as x, b.id as y from s a left join c on a.k = c.cid right join s b on a.k = b.id) where x > 2 order by x, y
select a.id, b.cid, x.cid, region from s a join c b on a.k = b.cid full join r using (region) full join c x using (region) order by 1, 2, 3, 4
select region, r.boss, c.cid, x.n from r full join c using (region) join (select 'nowhere' as region, 1 as n union select region, cid from c) x using (region) order by 1, 2, 3, 4
select c.cid, r.boss, x.cid from r right join c using (region) left join c x using (region) order by 1, 2, 3
select region, count(*) from r full join c using (region) full join (select g as region, id from s) x using (region) group by region order by 1
select * from r full join c using (region) join s on c.cid = s.k order by cid, id
select * from r full join c using (region) full join (select g as region, id from s) x using (region) order by region, cid, id
select * from c full join r using (region) join (select region, quota as q from r) x on c.cid * 10 = x.q order by 1, cid, q
select a.id, b.region, x.id from s a, r b left join e x on b.region = x.g where a.k = x.k order by 1, 2, 3
select a.id, b.region, x.id from s a, r b left join s x on b.region = x.g where a.k = x.k order by 1, 2, 3
select a.id, b.cid, x.id from s a, c b left join e x on b.cid = x.k where a.k = x.k order by 1, 2, 3
with x as (select id, k from s) select x.id, c.cid from x full join c on x.k = c.cid order by 1, 2
with x as (select id, k from s), y as (select cid, region from c) select x.id, y.region from x right join y on x.k = y.cid order by 1, 2
with x as (select id, k, g from s) select a.id, b.id from x a join x b on a.g = b.g order by 1, 2
