select id, k & 3 as a, k | 4 as o, xor(k, 5) as x, ~k as n from s order by id
select id, id << 2 as l, id >> 1 as r, (id << 40) >> 39 as b from s order by id
select id, i8 & 15 as a, u8 | 1 as o, ~u8 as n, ~i8 as m, i8 >> 2 as r, i64 & i8 as b from s order by id
select id, i64 >> 3 as a, i64 >> 63 as b, i64 >> 64 as c, i64 & 255 as d, i64 | k as e, xor(i64, u8) as f from s order by id
select id, k >> 31 as a, k >> 40 as b, -k >> 1 as c, i8 >> 9 as d, u8 >> 8 as e from s order by id
select id, k >> id as a, k & id as b, k | id as c, xor(k, id) as d from s order by id
select count(*) from s where id & 1 = 1 and (k | 1) > 2
select id & 3 as m, count(*), sum(k & 7) as n from s group by m order by m
select 6 & 3 as a, 6 | 3 as b, xor(6, 3) as c, 1 << 5 as d, 1024 >> 3 as e, ~5 as f
select k & null as a, k << null as b, null >> k as c from s
select i & 1023 as a, count(*), min(i >> 4), max(xor(i, p)), sum(i16 | p) from w group by a order by a limit 40
select a.id, b.id from s a join s b on a.id & 3 = b.id & 3 and a.k = b.k order by 1, 2
select id & 1 as a, sum(k) from e group by a
