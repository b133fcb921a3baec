select s.id from s where s.k in (select c.cid from c where c.region = s.g) order by 1
select s.id from s where s.k not in (select c.cid from c where c.region = s.g) order by 1
select s.id from s where s.k in (select max(c.cid) from c where c.region = s.g) order by 1
select s.id from s where s.k not in (select max(c.cid) from c where c.region = s.g) order by 1
select s.id from s where s.k not in (select c.rank from c where c.region = s.g) order by 1
select s.id, s.k in (select c.rank from c where c.region = s.g) as x from s order by 1
select s.id, s.k not in (select c.rank from c where c.region = s.g) as x from s order by 1
select s.id, s.k in (select count(*) from c where c.region = s.g) as x from s order by 1
select s.id from s where s.d in (select max(c.credit) from c where c.cid = s.k) or s.b order by 1
select s.id from s where s.k in (select c.cid from c where c.region = s.g and c.rank > 1) or s.id = 4 order by 1
select s.id from s where not (s.k in (select c.cid from c where c.region = s.g)) order by 1
select s.id from s where s.f in (select c.w from c where c.region = s.g) order by 1
select s.id from s where s.f not in (select c.w from c where c.region = s.g) order by 1
select s.id, s.f in (select c.w from c where c.region = s.g) from s order by 1
select c.cid from c where c.rank in (select s.k from s where s.g = c.region) order by 1
select c.cid from c where c.rank not in (select s.k from s where s.g = c.region) order by 1
select c.cid, c.name in (select s.t from s where s.k = c.cid) from c order by 1
select c.cid, c.rank in (select s.k from s where s.g = c.region and s.b) from c order by 1
select c.cid, c.rank not in (select e.k from e where e.g = c.region) from c order by 1
select w.i from w where w.i16 in (select max(v.i16) from w v where v.p = w.p) order by 1
select w.i from w where w.i16 not in (select v.i16 from w v where v.p = w.i16) order by 1
select exists (select 1 from c where c.region = s.g and c.rank > 1), count(*) from s group by exists (select 1 from c where c.region = s.g and c.rank > 1) order by 1
select s.k in (select c.cid from c) as known, count(*) from s group by s.k in (select c.cid from c) order by 1
select (select max(c.rank) from c where c.region = s.g) + 1, count(*) from s group by (select max(c.rank) from c where c.region = s.g) order by 1
