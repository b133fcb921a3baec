select k || 'x', concat(k, '-', g), concat(d, b, day) from s order by id
select g || count(*) from s group by g order by 1
select strftime(day, '%Y-%m') as m, count(*) from s group by m order by m
select strftime(ts, '%d/%m/%Y %H:%M:%S.%f %j %a %A %b %B %y %p %I') from s order by id
select strftime(day, '%-d.%-m.%Y %u %w %V %G %W %U') from s order by id
select strftime('%Y', day) from s order by id
select monthname(day), dayname(day) from s order by id
select dayname(ts), count(*) from s group by 1 order by 1
select id || ': ' || coalesce(t, 'none') from s order by id
select regexp_replace(t, 'b', 'X') from s order by id
select regexp_replace(t, '[a-c]', 'X', 'g') from s order by id
select regexp_replace(t, '([a-c])([a-c])', '\2\1') from s order by id
select regexp_extract(t, '[a-c]+') from s order by id
select regexp_extract(t, '([a-c])([a-c])', 2) from s order by id
select regexp_extract(t, '(a|ab)(c|bcd)?', 1), regexp_extract(t, '^z.*'), regexp_extract(t, 'l+o?') from s order by id
select lpad(t, 5, '*'), rpad(t, 5, '*'), lpad(t, 6, 'xy'), rpad(t, 2, ' '), lpad(t, 0, 'x') from s order by id
select repeat(t, 2), repeat(t, 0) from s order by id
select split_part(t, 'b', 1), split_part(t, ' ', 2), split_part(t, 'b', -1), split_part(t, 'b', 5), split_part(t, 'a',
  0) from s order by id
select ascii(t), strlen(t), bit_length(t), md5(t) from s order by id
select translate(t, 'abc', 'xyz'), translate(t, 'abc', 'x') from s order by id
select concat_ws('-', t, g), concat_ws(', ', g, k, d), concat_ws('/', g) from s order by id
select trunc(d), trunc(f), trunc(e) from s where abs(f) < 1e6 order by id
select isinf(f), isfinite(f), isnan(f) from s order by id
select power(k, 2), k ^ 3, pow(d, 2), 2 ** 3, power(f, 0.5), power(k, -1), power(k, 0) from s where f >= 0 and f < 1e9
  order by id
select bool_and(b), bool_or(b) from s
select g, bool_and(k > 1), bool_or(k > 5) from s group by g order by g
select bool_and(b) from e
select any_value(g) from s where g = 'north'
select date_diff('month', day, date '2024-01-01'), date_diff('year', day, date '2024-01-01'), date_diff('quarter',
  day, date '2024-01-01'), date_diff('week', day, date '2024-01-01'), date_diff('day', day, date '2024-01-01') from s
  order by id
select date_diff('hour', ts, timestamp '2024-01-01 00:00:00'), date_diff('minute', ts, timestamp '2024-01-01
  00:00:30'), date_diff('second', ts, timestamp '2024-01-01 00:00:30.5'), date_diff('week', ts, timestamp '2024-01-01
  00:00:00') from s order by id
select date_diff('day', ts, day), datediff('month', day, ts), date_diff('hour', day, ts) from s order by id
select extract(decade from day), extract(century from day), extract(millennium from day), extract(isoyear from day)
  from s order by id
select extract(isoyear from ts), date_part('decade', ts) from s order by id
select current_date > day from s where day is not null order by id
select floor(k), ceil(k), round(k), floor(d), ceil(d) from s order by id
