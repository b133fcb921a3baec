select g, k from s except all select region, cid from c order by g, k
select g from s intersect all select region from c order by g
select k from e intersect all select rank from c
select k from e except all select rank from c
select k from s except all select k from e order by k
select f from s except all select w from c order by f
select f from s intersect all select f from s order by f
select sum(distinct d), avg(distinct e), sum(distinct f) from s where f < 1000 and f > -1000
select sum(distinct k), avg(distinct k), count(distinct k) from e
select g, sum(distinct k) from e group by g
select sum(distinct a), avg(distinct x) from n
select z, sum(distinct i16), avg(distinct p), sum(distinct d4), avg(distinct x) from w group by z order by z
select p, sum(distinct i16) filter (where tf), sum(distinct i16 % 3) from w group by p order by p
select g, sum(distinct k) + count(*), sum(distinct k) / 2 from s group by g having sum(distinct k) > 3 order by g
select avg(distinct i64), avg(distinct u8) from s
select sum(distinct b) from s
select s.id from s where s.f not in (select w from c) order by 1
select s.id, s.f in (select w from c) from s order by 1
select s.id from s where s.e in (select d from s) order by 1
select s.id from s where s.day in (select ts from s) order by 1
select s.id from s where s.k in (select d from s) order by 1
select s.id from s where s.d in (select k from s) order by 1
select s.id from s where s.k in (select f from s) order by 1
select s.id from s where s.f in (select k from s) order by 1
select s.id from s where s.d in (select f from s) order by 1
select s.id from s where s.f in (select d from s) order by 1
select s.id from s where s.i64 in (select f from s) order by 1
select s.id, c.cid from s join c on s.d = c.credit order by 1, 2
select s.id, c.cid from s left join c on s.f = c.w order by 1, 2
select s.id, c.cid from s join c on s.f = c.w order by 1, 2
select s.id, c.cid from s join c on s.ts = c.since order by 1, 2
select s.id, c.cid from s join c on s.d = c.cid order by 1, 2
select s.id, c.cid from s join c on s.f = c.cid and s.g = c.region order by 1, 2
select s.id, c.cid from s join c on s.d = c.cid and s.g = c.region order by 1, 2
select i from w where x in (select x from w where p < 20) order by i
select i from w where f4 in (select f4 from w where p < 5) order by i
select count(*) from w where ns in (select ms from w)
select count(*) from w where ms in (select ns from w)
select count(*) from w where ms in (select sec from w)
select count(*) from w where sec in (select cast(ms as date) from w)
select count(*) from w where u64 in (select i16 from w)
select count(*) from w where d18 in (select d4 from w)
select count(*) from w where d4 in (select d18 from w)
select i from w where exists (select 1 from w v where v.x = w.x and v.i <> w.i and v.p < 3) order by i
select w.i, dim.q from w join dim on w.d4 = dim.q order by i
select w.i, dim.nm from w left join dim on w.x = dim.q order by i
select k, count() from s group by k order by k
