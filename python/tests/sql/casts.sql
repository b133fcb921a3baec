select day::varchar from s order by id
select ts::varchar from s order by id
select id::varchar, k::varchar, i64::varchar, u8::varchar, i8::varchar from s order by id
select d::varchar, e::varchar from s order by id
select f::varchar from s order by id
select b::varchar from s order by id
select t::varchar from s order by id
select cast(k as text) || '-' || g from s order by id
select k::text || 'x' || d::text from s order by id
select length(cast(id as varchar)) from s order by id
select cast(1.50 as varchar), cast(true as varchar), cast(1e20 as varchar), cast(0.1::double as varchar), cast(7 as
  varchar), cast(date '2024-01-01' as varchar), cast(timestamp '2024-01-01 10:00:00.5' as varchar) from o
select id from s where cast(k as varchar) = '2' order by id
select id from s where cast(day as varchar) like '2024-%' order by id
select left(day::varchar, 7) as m, count(*) from s group by m order by m
select cast(k as varchar) as x, count(*) from s group by x order by x
select max(k::varchar), min(id::varchar), count(distinct d::varchar) from s
select f::varchar, count(*) from s group by 1 order by 1
select cast(sum(k) as varchar), cast(avg(d) as varchar), cast(count(*) as varchar) || ' rows' from s
select g, cast(sum(d) as varchar) from s group by g order by g
select coalesce(k::varchar, 'none'), coalesce(cast(day as varchar), '-') from s order by id
select case when k > 2 then k::varchar else g end from s order by id
select s.id, c.rank::varchar, c.since::varchar, c.w::varchar from s left join c on s.k = c.cid order by s.id
select s.id, c.name from s join c on s.k::varchar = c.cid::varchar order by s.id
select (day + interval 1 day)::varchar, date_trunc('month', ts)::varchar, date_trunc('hour', ts)::varchar from s order
  by id
select cast(k + 1 as varchar), cast(k * d as varchar), cast(k / 2 as varchar), cast(k > 2 as varchar) from s order by
  id
select k::varchar from e
select a::varchar, x::varchar, s::varchar, dd::varchar from n
select cast(null as varchar) from o
select k::varchar from s union select t from s order by 1
select k::varchar as x from s order by x desc nulls last, id limit 5
select x::varchar from w order by i limit 500
select f4::varchar from w order by i limit 500
select (f4 * 3)::double::varchar from w order by i limit 0
select d18::varchar, d4::varchar, i16::varchar, far::varchar, ub::varchar from w order by i
select ns::varchar from w order by i limit 50
select ms::varchar, sec::varchar from w order by i limit 200
select (x / 3)::varchar, (x * 1e10)::varchar, (x * 1e-7)::varchar, (x * 123456789)::varchar from w order by i limit
  500
select (-x * 1e15)::varchar, (x * 1e17)::varchar, (x * 1e22)::varchar, (x*1e-300)::varchar from w order by i limit 500
select try_cast(t as integer) from s order by id
select try_cast(t as double) from s order by id
select try_cast(t as decimal(5,1)) from s order by id
select try_cast(t as date) from s order by id
select try_cast(t as boolean) from s order by id
select try_cast(i64 as integer) from s order by id
select try_cast(id as tinyint), try_cast(k as varchar) from s order by id
select try_cast(f as integer) from s order by id
select try_cast(f as bigint), try_cast(f as tinyint) from s order by id
select try_cast(d as decimal(4,2)) from s order by id
select try_cast(d as decimal(3,1)), try_cast(d as decimal(2,0)), try_cast(d as decimal(9,4)), try_cast(e as tinyint)
  from s order by id
select try_cast(f as decimal(4,2)) from s order by id
select try_cast(f as decimal(18,2)), try_cast(f as decimal(3,3)) from s order by id
select try_cast(day as timestamp), try_cast(ts as date) from s order by id
select try_cast(k as boolean), try_cast(b as integer), try_cast(k as double) from s order by id
select try_cast(k as decimal(2,1)), try_cast(i64 as decimal(18,3)), try_cast(u8 as tinyint) from s order by id
select try_cast('abc' as integer), try_cast('12' as integer), try_cast('2024-01-40' as date), try_cast(300 as
  tinyint), try_cast(null as integer) from o
select try_cast(k::varchar as integer) = k from s order by id
select sum(try_cast(t as integer)), count(try_cast(t as double)) from s
select id from s where try_cast(t as integer) is null order by id
select coalesce(try_cast(t as integer), -1) from s order by id
select try_cast('2024-1-5' as date), try_cast('2024/01/05' as date), try_cast('20240105' as date),
  try_cast('2024-01-05 10:00' as timestamp), try_cast('2024-01-05T10:00:00' as timestamp), try_cast(' 2024-01-05 ' as
  date), try_cast('2024-01-05 10:00:00.123456' as timestamp), try_cast('2024-02-30' as date) from o
select try_cast('1e2' as integer), try_cast('1.5' as integer), try_cast('2.5' as integer), try_cast(' 7 ' as integer),
  try_cast('1_000' as integer), try_cast('+5' as integer), try_cast('' as integer), try_cast('0x1F' as integer),
  try_cast('-2.5' as integer) from o
select try_cast('nan' as double), try_cast('inf' as double), try_cast('-Infinity' as double), try_cast('1e400' as
  double), try_cast('.5' as double), try_cast('5.' as double), try_cast('1,5' as double), try_cast('1_0' as double) from
  o
select try_cast('yes' as boolean), try_cast('T' as boolean), try_cast('1' as boolean), try_cast('off' as boolean),
  try_cast('on' as boolean), try_cast('n' as boolean), try_cast('2' as boolean) from o
select try_cast('1.255' as decimal(4,2)), try_cast('99.995' as decimal(4,2)), try_cast('1e1' as decimal(4,2)),
  try_cast('' as decimal(4,2)), try_cast('nan' as decimal(4,2)) from o
select try_cast('9223372036854775807' as bigint), try_cast('9223372036854775808' as bigint),
  try_cast('9223372036854775807.4' as bigint), try_cast('-128' as tinyint), try_cast('128' as tinyint) from o
select w, try_cast(w as int), try_cast(w as double), try_cast(w as decimal(6,2)) from odd
select w, try_cast(w as tinyint), try_cast(w as bigint), try_cast(w as boolean) from odd
select i64::varchar::bigint, f::varchar::double, day::varchar::date from s
select cast(a as varchar), cast(cast(a as varchar) as int), cast(x as varchar) from n
