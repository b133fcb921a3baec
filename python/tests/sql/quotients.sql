select d // 3, f // 2, k // 2, d // d, 7.5 // 2, -7 // 2 from s where d <> 0 order by id
select max(day) - min(day), max(day) + 1, min(k) + 1, year(max(day)) from s
select g, max(day) - min(day), sum(d) // 3, sum(k) // 2, max(b) from s group by g order by g
select w = 0.1, w > 0.1 from c
