select id, ts + interval '1 day 2 hours' as a, ts - interval '1 month 3 days 04 minutes' as b from s order by id
select id, ts + interval '-1 day' as a, ts - interval '2 years -3 months' as b, interval '1 week' + ts as c from s order by id
select id, cast(day + interval '1 day 2 hours' as timestamp) as a, cast(interval '1 month 1 day' + day as date) as b from s order by id
select id from s where ts > timestamp '2024-01-01' + interval '1 year 2 months 3 days 4 hours 5 minutes 6 seconds' order by id
select id from s where ts < timestamp '2025-03-31 01:00:00' - interval '1 month 30 hours' order by id
select id, ts + interval '36 hours' as a, ts + interval '2 weeks 1 day' as b, ts + interval (-3) day as c from s order by id
select id, day + interval '1 quarter' as a, ts + interval '1 day 86400 seconds' as b from s order by id
select ts + interval '1 day 1 hour' as later, count(*) from s group by later order by later
