select a.id, b.id from s a left join (select id, f, i64, g from s where f is not null and i64 is not null and id < 20)
  b on a.f = b.f and a.i64 = b.i64 order by 1, 2
select a.id, b.id from s a left join s b on a.f = b.f and a.id = b.id order by 1, 2
select a.id, b.id from s a join s b on a.f = b.f and a.ts = b.ts and a.i64 = b.i64 order by 1, 2
select w.i, v.i from w join w v on w.far = v.far and w.i = v.i and w.x = v.x order by 1 limit 500
select w.i, q.n from w left join (select far, d18, x, count(*) n from w where p < 300 group by all) q on w.far = q.far
  and w.d18 = q.d18 and w.x = q.x order by 1
select count(*) from w where exists (select 1 from w v where v.far = w.far and v.ns = w.ns and v.x = w.x and v.i <>
  w.i)
select w.i from w where not exists (select 1 from w v where v.far = w.far and v.utc = w.utc and v.d18 = w.d18 and v.p
  < 100) and w.p < 40 order by 1
select a."end", b.v from ends a join ends b on a.one = b.one and a."end" = b."end"
