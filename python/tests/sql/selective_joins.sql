select s.id, c.name from s, c, r where s.k = c.cid and c.region = r.region and ((r.region = 'north' and s.g = 'south')
  or (r.region = 'south' and s.g = 'north')) order by s.id
select s.id, c.name from s, c where s.k = c.cid and (c.rank = 1 or s.k = 2) order by s.id
select s.id, c.name from s, c where s.k = c.cid and (c.rank = 1 and s.b or c.rank = 2 and not s.b) order by s.id
select s.id, c.name from s, c where s.k = c.cid and (c.rank = 1 and s.b or c.rank = 2 and c.cid < 5 and not s.b or
  c.name = 'fay' and s.id > 3) order by s.id
select s.id, c.name from s left join c on s.k = c.cid where (c.rank = 1 and s.b) or (c.rank is null and s.id > 3)
  order by s.id
select count(*), sum(q), sum(w.d4) from w join dim on w.p = dim.p and dim.p < 20 join c on w.i16 = c.cid
select w.i, dim.nm, c.name from w join dim on w.p = dim.p and dim.p < 200 left join c on w.i16 = c.cid order by w.i
select w.i, dim.nm, c.name from w join dim on w.p = dim.p left join c on w.i16 = c.cid where dim.p < 100 order by w.i
select w.i from w join dim on w.p = dim.p and dim.p < 100 anti join c on w.i16 = c.cid order by w.i
select w.i from w join dim on w.p = dim.p and dim.p < 500 semi join c on w.i16 = c.cid order by w.i
select w.i from w semi join dim on w.p = dim.p and dim.p < 50 where w.i16 not in (select cid from c) order by w.i
select w.i, c.region from w join dim on w.p = dim.p join c on dim.q = c.credit where c.cid = 6 order by w.i
select dim.nm, count(*), min(c.name) from w join dim on w.p = dim.p and dim.p < 300 left join c on w.i16 = c.cid group
  by dim.nm order by 1
select w.i, (select count(*) from s where s.k = w.i16) from w join dim on w.p = dim.p and dim.p < 60 order by w.i
