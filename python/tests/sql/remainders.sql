select f % -1, f % 2.5, d % -3, k % -2, f % -0.3 from s where id not in (5, 6) order by id
