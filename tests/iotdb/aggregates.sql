-- Aggregates of each type: all values, windows, none.
create database root.agg
create timeseries root.agg.d.b BOOLEAN encoding=PLAIN
create timeseries root.agg.d.i INT32 encoding=PLAIN
create timeseries root.agg.d.l INT64 encoding=PLAIN
create timeseries root.agg.d.f FLOAT encoding=PLAIN
create timeseries root.agg.d.d DOUBLE encoding=PLAIN
create timeseries root.agg.d.t TEXT encoding=PLAIN
create timeseries root.agg.d.s STRING encoding=PLAIN
create timeseries root.agg.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.agg.d.da DATE encoding=PLAIN
create timeseries root.agg.d.bl BLOB encoding=PLAIN
insert into root.agg.d(time,b,i,l,f,d,t,s,ts,da,bl) values (1,true,1,10,1.5,2.25,'one','uno',1000,'2024-01-02',X'01')
insert into root.agg.d(time,b,i,l,f,d,t,s,ts,da,bl) values (2,false,-2,-20,-0.5,-0.5,'two','one',-1000,'1999-12-31',X'0a41')
insert into root.agg.d(time,b,i,l,f,d,t,s) values (7,true,3,30,2.5,0.5,'one','tres')
select count(b) from root.agg.d
select count(i) from root.agg.d
select count(l) from root.agg.d
select count(f) from root.agg.d
select count(d) from root.agg.d
select count(t) from root.agg.d
select count(s) from root.agg.d
select count(ts) from root.agg.d
select count(da) from root.agg.d
select count(bl) from root.agg.d
select sum(b) from root.agg.d
select sum(i) from root.agg.d
select sum(l) from root.agg.d
select sum(f) from root.agg.d
select sum(d) from root.agg.d
select sum(t) from root.agg.d
select sum(s) from root.agg.d
select sum(ts) from root.agg.d
select sum(da) from root.agg.d
select sum(bl) from root.agg.d
select avg(b) from root.agg.d
select avg(i) from root.agg.d
select avg(l) from root.agg.d
select avg(f) from root.agg.d
select avg(d) from root.agg.d
select avg(t) from root.agg.d
select avg(s) from root.agg.d
select avg(ts) from root.agg.d
select avg(da) from root.agg.d
select avg(bl) from root.agg.d
select min_value(b) from root.agg.d
select min_value(i) from root.agg.d
select min_value(l) from root.agg.d
select min_value(f) from root.agg.d
select min_value(d) from root.agg.d
select min_value(t) from root.agg.d
select min_value(s) from root.agg.d
select min_value(ts) from root.agg.d
select min_value(da) from root.agg.d
select min_value(bl) from root.agg.d
select max_value(b) from root.agg.d
select max_value(i) from root.agg.d
select max_value(l) from root.agg.d
select max_value(f) from root.agg.d
select max_value(d) from root.agg.d
select max_value(t) from root.agg.d
select max_value(s) from root.agg.d
select max_value(ts) from root.agg.d
select max_value(da) from root.agg.d
select max_value(bl) from root.agg.d
select extreme(b) from root.agg.d
select extreme(i) from root.agg.d
select extreme(l) from root.agg.d
select extreme(f) from root.agg.d
select extreme(d) from root.agg.d
select extreme(t) from root.agg.d
select extreme(s) from root.agg.d
select extreme(ts) from root.agg.d
select extreme(da) from root.agg.d
select extreme(bl) from root.agg.d
select first_value(b) from root.agg.d
select first_value(i) from root.agg.d
select first_value(l) from root.agg.d
select first_value(f) from root.agg.d
select first_value(d) from root.agg.d
select first_value(t) from root.agg.d
select first_value(s) from root.agg.d
select first_value(ts) from root.agg.d
select first_value(da) from root.agg.d
select first_value(bl) from root.agg.d
select last_value(b) from root.agg.d
select last_value(i) from root.agg.d
select last_value(l) from root.agg.d
select last_value(f) from root.agg.d
select last_value(d) from root.agg.d
select last_value(t) from root.agg.d
select last_value(s) from root.agg.d
select last_value(ts) from root.agg.d
select last_value(da) from root.agg.d
select last_value(bl) from root.agg.d
select mode(b) from root.agg.d
select mode(i) from root.agg.d
select mode(l) from root.agg.d
select mode(f) from root.agg.d
select mode(d) from root.agg.d
select mode(t) from root.agg.d
select mode(s) from root.agg.d
select mode(ts) from root.agg.d
select mode(da) from root.agg.d
select mode(bl) from root.agg.d
select stddev(b) from root.agg.d
select stddev(i) from root.agg.d
select stddev(l) from root.agg.d
select stddev(f) from root.agg.d
select stddev(d) from root.agg.d
select stddev(t) from root.agg.d
select stddev(s) from root.agg.d
select stddev(ts) from root.agg.d
select stddev(da) from root.agg.d
select stddev(bl) from root.agg.d
select var_pop(b) from root.agg.d
select var_pop(i) from root.agg.d
select var_pop(l) from root.agg.d
select var_pop(f) from root.agg.d
select var_pop(d) from root.agg.d
select var_pop(t) from root.agg.d
select var_pop(s) from root.agg.d
select var_pop(ts) from root.agg.d
select var_pop(da) from root.agg.d
select var_pop(bl) from root.agg.d
select min_time(b) from root.agg.d
select min_time(i) from root.agg.d
select min_time(l) from root.agg.d
select min_time(f) from root.agg.d
select min_time(d) from root.agg.d
select min_time(t) from root.agg.d
select min_time(s) from root.agg.d
select min_time(ts) from root.agg.d
select min_time(da) from root.agg.d
select min_time(bl) from root.agg.d
select max_time(b) from root.agg.d
select max_time(i) from root.agg.d
select max_time(l) from root.agg.d
select max_time(f) from root.agg.d
select max_time(d) from root.agg.d
select max_time(t) from root.agg.d
select max_time(s) from root.agg.d
select max_time(ts) from root.agg.d
select max_time(da) from root.agg.d
select max_time(bl) from root.agg.d
select time_duration(b) from root.agg.d
select time_duration(i) from root.agg.d
select time_duration(l) from root.agg.d
select time_duration(f) from root.agg.d
select time_duration(d) from root.agg.d
select time_duration(t) from root.agg.d
select time_duration(s) from root.agg.d
select time_duration(ts) from root.agg.d
select time_duration(da) from root.agg.d
select time_duration(bl) from root.agg.d
select first_value(b), last_value(b), count(b), max_time(b) from root.agg.d group by ([0, 9), 3ms)
select max_by(b, i), min_by(b, i) from root.agg.d
select max_by(i, b) from root.agg.d
select count_if(b is not null, 1) from root.agg.d
select last b from root.agg.d
select count(b) from root.agg.d where time > 100
select last_value(b) from root.agg.d where time > 100
select count(b) from root.agg.d group by level = 1
select first_value(i), last_value(i), count(i), max_time(i) from root.agg.d group by ([0, 9), 3ms)
select max_by(i, i), min_by(i, i) from root.agg.d
select max_by(i, i) from root.agg.d
select count_if(i is not null, 1) from root.agg.d
select last i from root.agg.d
select count(i) from root.agg.d where time > 100
select last_value(i) from root.agg.d where time > 100
select count(i) from root.agg.d group by level = 1
select first_value(l), last_value(l), count(l), max_time(l) from root.agg.d group by ([0, 9), 3ms)
select max_by(l, i), min_by(l, i) from root.agg.d
select max_by(i, l) from root.agg.d
select count_if(l is not null, 1) from root.agg.d
select last l from root.agg.d
select count(l) from root.agg.d where time > 100
select last_value(l) from root.agg.d where time > 100
select count(l) from root.agg.d group by level = 1
select first_value(f), last_value(f), count(f), max_time(f) from root.agg.d group by ([0, 9), 3ms)
select max_by(f, i), min_by(f, i) from root.agg.d
select max_by(i, f) from root.agg.d
select count_if(f is not null, 1) from root.agg.d
select last f from root.agg.d
select count(f) from root.agg.d where time > 100
select last_value(f) from root.agg.d where time > 100
select count(f) from root.agg.d group by level = 1
select first_value(d), last_value(d), count(d), max_time(d) from root.agg.d group by ([0, 9), 3ms)
select max_by(d, i), min_by(d, i) from root.agg.d
select max_by(i, d) from root.agg.d
select count_if(d is not null, 1) from root.agg.d
select last d from root.agg.d
select count(d) from root.agg.d where time > 100
select last_value(d) from root.agg.d where time > 100
select count(d) from root.agg.d group by level = 1
select first_value(t), last_value(t), count(t), max_time(t) from root.agg.d group by ([0, 9), 3ms)
select max_by(t, i), min_by(t, i) from root.agg.d
select max_by(i, t) from root.agg.d
select count_if(t is not null, 1) from root.agg.d
select last t from root.agg.d
select count(t) from root.agg.d where time > 100
select last_value(t) from root.agg.d where time > 100
select count(t) from root.agg.d group by level = 1
select first_value(s), last_value(s), count(s), max_time(s) from root.agg.d group by ([0, 9), 3ms)
select max_by(s, i), min_by(s, i) from root.agg.d
select max_by(i, s) from root.agg.d
select count_if(s is not null, 1) from root.agg.d
select last s from root.agg.d
select count(s) from root.agg.d where time > 100
select last_value(s) from root.agg.d where time > 100
select count(s) from root.agg.d group by level = 1
select first_value(ts), last_value(ts), count(ts), max_time(ts) from root.agg.d group by ([0, 9), 3ms)
select max_by(ts, i), min_by(ts, i) from root.agg.d
select max_by(i, ts) from root.agg.d
select count_if(ts is not null, 1) from root.agg.d
select last ts from root.agg.d
select count(ts) from root.agg.d where time > 100
select last_value(ts) from root.agg.d where time > 100
select count(ts) from root.agg.d group by level = 1
select first_value(da), last_value(da), count(da), max_time(da) from root.agg.d group by ([0, 9), 3ms)
select max_by(da, i), min_by(da, i) from root.agg.d
select max_by(i, da) from root.agg.d
select count_if(da is not null, 1) from root.agg.d
select last da from root.agg.d
select count(da) from root.agg.d where time > 100
select last_value(da) from root.agg.d where time > 100
select count(da) from root.agg.d group by level = 1
select first_value(bl), last_value(bl), count(bl), max_time(bl) from root.agg.d group by ([0, 9), 3ms)
select max_by(bl, i), min_by(bl, i) from root.agg.d
select max_by(i, bl) from root.agg.d
select count_if(bl is not null, 1) from root.agg.d
select last bl from root.agg.d
select count(bl) from root.agg.d where time > 100
select last_value(bl) from root.agg.d where time > 100
select count(bl) from root.agg.d group by level = 1
select count(i) from root.agg.d group by ([0, 9), 3ms)
select count(i) from root.agg.d where i > 100
select count(i) + 1 from root.agg.d
select count(i + l) from root.agg.d
select count(*) from root.agg.d
select count(nothing) from root.agg.d
select sum(i) from root.agg.d group by ([0, 9), 3ms)
select sum(i) from root.agg.d where i > 100
select sum(i) + 1 from root.agg.d
select sum(i + l) from root.agg.d
select sum(*) from root.agg.d
select sum(nothing) from root.agg.d
select avg(i) from root.agg.d group by ([0, 9), 3ms)
select avg(i) from root.agg.d where i > 100
select avg(i) + 1 from root.agg.d
select avg(i + l) from root.agg.d
select avg(*) from root.agg.d
select avg(nothing) from root.agg.d
select max_value(i) from root.agg.d group by ([0, 9), 3ms)
select max_value(i) from root.agg.d where i > 100
select max_value(i) + 1 from root.agg.d
select max_value(i + l) from root.agg.d
select max_value(*) from root.agg.d
select max_value(nothing) from root.agg.d
select extreme(i) from root.agg.d group by ([0, 9), 3ms)
select extreme(i) from root.agg.d where i > 100
select extreme(i) + 1 from root.agg.d
select extreme(i + l) from root.agg.d
select extreme(*) from root.agg.d
select extreme(nothing) from root.agg.d
select mode(i) from root.agg.d group by ([0, 9), 3ms)
select mode(i) from root.agg.d where i > 100
select mode(i) + 1 from root.agg.d
select mode(i + l) from root.agg.d
select mode(*) from root.agg.d
select mode(nothing) from root.agg.d
select last_value(i) from root.agg.d group by ([0, 9), 3ms)
select last_value(i) from root.agg.d where i > 100
select last_value(i) + 1 from root.agg.d
select last_value(i + l) from root.agg.d
select last_value(*) from root.agg.d
select last_value(nothing) from root.agg.d
select stddev(i) from root.agg.d group by ([0, 9), 3ms)
select stddev(i) from root.agg.d where i > 100
select stddev(i) + 1 from root.agg.d
select stddev(i + l) from root.agg.d
select stddev(*) from root.agg.d
select stddev(nothing) from root.agg.d
select var_pop(i) from root.agg.d group by ([0, 9), 3ms)
select var_pop(i) from root.agg.d where i > 100
select var_pop(i) + 1 from root.agg.d
select var_pop(i + l) from root.agg.d
select var_pop(*) from root.agg.d
select var_pop(nothing) from root.agg.d
select min_time(i) from root.agg.d group by ([0, 9), 3ms)
select min_time(i) from root.agg.d where i > 100
select min_time(i) + 1 from root.agg.d
select min_time(i + l) from root.agg.d
select min_time(*) from root.agg.d
select min_time(nothing) from root.agg.d
select time_duration(i) from root.agg.d group by ([0, 9), 3ms)
select time_duration(i) from root.agg.d where i > 100
select time_duration(i) + 1 from root.agg.d
select time_duration(i + l) from root.agg.d
select time_duration(*) from root.agg.d
select time_duration(nothing) from root.agg.d
