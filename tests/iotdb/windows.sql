-- Aggregates over the whole, windows, levels, tags; HAVING, FILL.
create database root.win
create timeseries root.win.east.m1.v INT32 tags(site=east, kind=pump)
create timeseries root.win.east.m2.v INT32 tags(site=east, kind=fan)
create timeseries root.win.west.m1.v INT32 tags(site=west, kind=pump)
create timeseries root.win.east.m1.w DOUBLE
create timeseries root.win.east.m1.k BOOLEAN
create timeseries root.win.east.m1.t TEXT
select count(v) from root.win.east.m1
select sum(v), avg(v), max_value(v), first_value(v), max_time(v) from root.win.east.m1
select count(v) from root.win.east.m1 group by ([0, 4), 2ms)
insert into root.win.east.m1(time,v,w,k,t) values (1,5,0.5,true,'a'),(2,6,1.5,true,'b'),(3,7,2.5,false,'a'),(5,8,null,false,'c'),(8,null,4.5,true,'a'),(9,3,5.5,true,null),(20,4,6.5,false,'d')
insert into root.win.east.m2(time,v) values (1,50),(4,60),(9,70)
insert into root.win.west.m1(time,v) values (2,-1),(3,-2)
select count(v) from root.win.east.m1
select count(*) from root.win.east.m1
select count(*) from root.win.**
select count(v) from root.win.**
select count(v), sum(v) from root.win.east.*
select sum(v), avg(v), min_value(v), max_value(v), extreme(v) from root.win.east.m1
select first_value(v), last_value(v), min_time(v), max_time(v), time_duration(v) from root.win.east.m1
select first_value(t), last_value(t), mode(t), count(t) from root.win.east.m1
select stddev(v), stddev_pop(v), stddev_samp(v) from root.win.east.m1
select variance(v), var_pop(v), var_samp(v) from root.win.east.m1
select max_by(w, v), min_by(w, v) from root.win.east.m1
select max_by(time, v), min_by(time, v) from root.win.east.m1
select max_by(t, w) from root.win.east.m1
select mode(v) from root.win.east.m1
select count_if(v > 5, 1) from root.win.east.m1
select count_if(v > 5, 2) from root.win.east.m1
select count_if(k, 1) from root.win.east.m1
select count_if(v > 5, keep > 1) from root.win.east.m1
select count_if(v > 5, keep > 1, 'ignoreNull'='false') from root.win.east.m1
select count_time(*) from root.win.east.m1
select count_time(*) from root.win.east.*
select sum(k) from root.win.east.m1
select sum(t) from root.win.east.m1
select avg(t) from root.win.east.m1
select max_value(t) from root.win.east.m1
select min_value(k) from root.win.east.m1
select extreme(t) from root.win.east.m1
select count(k), first_value(k), last_value(k) from root.win.east.m1
select count(v) from root.win.east.m1 where time > 3
select count(v) from root.win.east.m1 where v > 5
select count(v) from root.win.east.m1 where time > 100
select sum(v), max_value(v) from root.win.east.m1 where time > 100
select count(v) + 1 from root.win.east.m1
select count(v) * 2, -sum(v) from root.win.east.m1
select sum(v + w) from root.win.east.m1
select sum(v) / count(v) from root.win.east.m1
select sum(v) as total from root.win.east.m1
select avg(v) > 5 from root.win.east.m1
select sin(sum(v)) from root.win.east.m1
select sum(sum(v)) from root.win.east.m1
select count(v), v from root.win.east.m1
select count(v) as n, n from root.win.east.m1
select v + count(v) from root.win.east.m1
select sum(v), top_k(v, 'k'='2') from root.win.east.m1
select count() from root.win.east.m1
select count(v, w) from root.win.east.m1
select unknown(v) from root.win.east.m1
select count(nothing) from root.win.east.m1
select count(v) from root.win.nowhere
select COUNT(v), Sum(v) from root.win.east.m1
select max_value(v) from root.win.east.* align by device
select count(v) from root.win.** align by device
select count(v), count(w) from root.win.** align by device
select sum(v) as total from root.win.** align by device
select sum(v) from root.win.** order by device desc align by device
select sum(v) from root.win.** order by sum(v) align by device
select count(v) from root.win.east.m1 group by ([0, 10), 2ms)
select count(v), sum(v) from root.win.east.m1 group by ([0, 10), 2ms)
select sum(v), avg(w) from root.win.east.m1 group by ([0, 10), 4ms)
select count(v) from root.win.east.m1 group by ([0, 10), 4ms, 2ms)
select count(v) from root.win.east.m1 group by ([0, 10), 2ms, 4ms)
select count(v) from root.win.east.m1 group by ((0, 10], 2ms)
select sum(v) from root.win.east.m1 group by ((0, 10], 3ms)
select count(v) from root.win.east.m1 group by ([0, 9), 2ms)
select count(v) from root.win.east.m1 group by ([10, 20), 5ms)
select count(v) from root.win.east.m1 group by ([100, 110), 5ms)
select sum(v) from root.win.east.m1 group by ([100, 110), 5ms)
select count(v) from root.win.east.m1 group by ([10, 0), 5ms)
select count(v) from root.win.east.m1 group by ([0, 10), 0ms)
select count(v) from root.win.east.m1 group by ([0, 10), 2)
select v from root.win.east.m1 group by ([0, 10), 2ms)
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) order by time desc
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) limit 2
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) limit 2 offset 2
select __endTime, count(v) from root.win.east.m1 group by ([0, 10), 5ms)
select count(v), __endTime from root.win.east.m1 group by ([0, 10), 5ms)
select count(v) from root.win.east.m1 where v > 5 group by ([0, 10), 5ms)
select count(v) from root.win.east.m1 where time > 3 group by ([0, 10), 5ms)
select count(v) from root.win.east.* group by ([0, 10), 5ms)
select count(v) from root.win.** group by ([0, 10), 5ms) align by device
select sum(v), count(w) from root.win.east.* group by ([0, 10), 5ms) align by device
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) having count(v) > 0
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) having sum(v) > 6
select count(v), sum(v) from root.win.east.m1 group by ([0, 10), 2ms) having count(v) > 0 and sum(v) < 10
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) having count(v) > 100
select count(v) from root.win.east.m1 group by ([0, 10), 2ms) having v > 1
select v from root.win.east.m1 having v > 1
select count(v) from root.win.east.m1 having count(v) > 1
select count(v) from root.win.east.m1 having count(v) > 100
select count(v) from root.win.** having count(v) > 2 align by device
select sum(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(previous)
select sum(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(linear)
select sum(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(0)
select avg(w) from root.win.east.m1 group by ([0, 10), 2ms) fill(1.5)
select max_value(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(previous)
select max_value(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(linear)
select max_value(v) from root.win.east.m1 group by ([0, 10), 2ms) fill(previous) order by time desc
select first_value(t) from root.win.east.m1 group by ([0, 10), 2ms) fill('none')
select v,w from root.win.east.m1 fill(previous)
select v,w from root.win.east.m1 fill(linear)
select v,w from root.win.east.m1 fill(7)
select v,t from root.win.east.m1 fill('x')
select v,k from root.win.east.m1 fill(true)
select v,w,k,t from root.win.east.m1 fill(previous)
select v,w,k,t from root.win.east.m1 fill(linear)
select v,w from root.win.east.m1 fill(previous, 2ms)
select v,w from root.win.east.m1 fill(linear, 2ms)
select v,w from root.win.east.m1 fill(nothing)
select v,w from root.win.east.m1 fill()
select v from root.win.** fill(previous) align by device
select v,w from root.win.** fill(linear) align by device
select count(v) from root.win.east.m1 group by variation(v)
select count(v) from root.win.east.m1 group by variation(v, 1)
select count(v), sum(v) from root.win.east.m1 group by variation(v, 2)
select __endTime, count(v) from root.win.east.m1 group by variation(v, 2)
select count(v), __endTime from root.win.east.m1 group by variation(k)
select count(v) from root.win.east.m1 group by variation(t)
select count(v) from root.win.east.m1 group by variation(w, 1, ignoreNull=false)
select count(v) from root.win.east.m1 group by variation(w, 1, ignoreNull=true)
select count(v) from root.win.east.m1 group by variation(v + w, 2)
select count(v) from root.win.east.m1 group by variation(nothing, 2)
select count(v) from root.win.** group by variation(v, 5) align by device
select count(v), __endTime from root.win.east.m1 group by condition(v > 5, keep >= 1)
select count(v) from root.win.east.m1 group by condition(v > 5, keep >= 2)
select count(v) from root.win.east.m1 group by condition(v > 5, keep = 3)
select count(v) from root.win.east.m1 group by condition(v > 5, keep > 4)
select count(v) from root.win.east.m1 group by condition(v > 5, 2)
select count(v) from root.win.east.m1 group by condition(v > 5, 4)
select count(v) from root.win.east.m1 group by condition(v > 5, 5)
select count(v) from root.win.east.m1 group by condition(v > 5, keep != 3)
select count(v) from root.win.east.m1 group by condition(v > 5)
select count(v) from root.win.east.m1 group by condition(k, keep >= 1)
select count(w) from root.win.east.m1 group by condition(v > 5, keep >= 1, ignoreNull=false)
select count(w) from root.win.east.m1 group by condition(v > 2, keep >= 1, ignoreNull=false)
select count(w) from root.win.east.m1 group by condition(v > 2, keep >= 1, ignoreNull=true)
select count(v) from root.win.east.m1 group by condition(v, keep >= 1)
select count(v) from root.win.** group by condition(v > 5, keep >= 1) align by device
select count(v) from root.win.east.m1 group by session(1ms)
select count(v), __endTime from root.win.east.m1 group by session(2ms)
select sum(v) from root.win.east.m1 group by session(100ms)
select count(v) from root.win.** group by session(2ms) align by device
select count(v) from root.win.east.m1 group by session(0ms)
select count(v) from root.win.east.m1 group by session(2)
select sum(v) from root.win.east.m1 group by count(v, 2)
select sum(v), __endTime from root.win.east.m1 group by count(v, 3)
select sum(v) from root.win.east.m1 group by count(v, 3, ignoreNull=false)
select sum(v) from root.win.east.m1 group by count(*, 3)
select sum(v) from root.win.east.m1 group by count(v)
select sum(v) from root.win.** group by count(v, 2) align by device
select count(v) from root.win.** group by level = 0
select count(v) from root.win.** group by level = 1
select count(v) from root.win.** group by level = 2
select count(v) from root.win.** group by level = 3
select sum(v) from root.win.** group by level = 2
select sum(v), count(v) from root.win.** group by level = 2
select avg(v) from root.win.** group by level = 2
select max_value(v), min_time(v) from root.win.** group by level = 2
select count(v) from root.win.** group by level = 1, 2
select count(v) from root.win.** group by level = 2, 3
select count(v) from root.win.** group by level = 3, 2
select count(v) from root.win.** group by level = 9
select count(v) from root.win.** group by level = -1
select count(*) from root.win.** group by level = 2
select last_value(v) from root.win.** group by level = 2
select count(v) as n from root.win.** group by level = 1
select count(v) from root.win.** group by ([0, 10), 5ms), level = 2
select count(v) from root.win.** group by ([0, 10), 5ms), level = 2 having count(v) > 1
select v from root.win.** group by level = 1
select count(v) from root.win.** group by level = 2 align by device
select count(v) from root.win.** group by tags(site)
select sum(v), count(v) from root.win.** group by tags(site)
select sum(v) from root.win.** group by tags(site, kind)
select sum(v) from root.win.** group by tags(kind)
select avg(v), max_value(v) from root.win.** group by tags(kind)
select sum(v) from root.win.** group by tags(nothing)
select sum(v) from root.win.** group by ([0, 10), 5ms), tags(site)
select v from root.win.** group by tags(site)
select count(v) from root.win.east.m1 group by ([0, 10), 5ms), ([0, 10), 5ms)
select count(v) from root.win.east.m1 group by ([0, 10), 2ms), variation(v)
select count(v) from root.win.east.m1 group by ([1970-01-01T00:00:00, 1970-01-01T00:00:01), 500ms)
select count(v) from root.win.east.m1 group by ([1970-01-01T00:00:00, 1970-04-01T00:00:00), 1mo)
select sum(v) from root.win.east.m1 group by ([1970-01-31T00:00:00, 1970-05-01T00:00:00), 1mo)
select count(v) from root.win.east.m1 group by ([1970-01-01T00:00:00, 1972-01-01T00:00:00), 1y)
select count(v) from root.win.east.m1 group by ([1970-01-01T00:00:00, 1970-01-15T00:00:00), 1w)
select count(v) from root.win.east.m1 group by ([0, 10), 1x)
select count(v) from root.win.east.m1 group by ([0, 10)
select count(v) from root.win.east.m1 group by 2ms
select date_bin(2ms, time) from root.win.east.m1
