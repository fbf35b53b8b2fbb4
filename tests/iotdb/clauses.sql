-- Clauses over each type: FILL, ORDER BY, IN, BETWEEN, LIKE, windows, CASE, INTO.
create database root.cl
create timeseries root.cl.d.b BOOLEAN encoding=PLAIN
create timeseries root.cl.d.i INT32 encoding=PLAIN
create timeseries root.cl.d.l INT64 encoding=PLAIN
create timeseries root.cl.d.f FLOAT encoding=PLAIN
create timeseries root.cl.d.d DOUBLE encoding=PLAIN
create timeseries root.cl.d.t TEXT encoding=PLAIN
create timeseries root.cl.d.s STRING encoding=PLAIN
create timeseries root.cl.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.cl.d.da DATE encoding=PLAIN
create timeseries root.cl.d.bl BLOB encoding=PLAIN
insert into root.cl.d(time,b,i,l,f,d,t,s,ts,da,bl) values (1,true,1,10,1.5,2.25,'one','uno',1000,'2024-01-02',X'01')
insert into root.cl.d(time,i) values (2,9)
insert into root.cl.d(time,b,i,l,f,d,t,s,ts,da,bl) values (4,false,-2,-20,-0.5,-0.5,'two','one',-1000,'1999-12-31',X'0a41')
insert into root.cl.d(time,l) values (5,7)
insert into root.cl.e(time,i,t) values (1,100,'e'),(4,-5,'f')
select b, i from root.cl.d fill(previous)
select b, i from root.cl.d fill(linear)
select b, i from root.cl.d fill(previous, 1ms)
select b, i from root.cl.d fill(previous) order by time desc
select b, i from root.cl.d fill(3)
select b, i from root.cl.d fill(2.5)
select b, i from root.cl.d fill('w')
select b, i from root.cl.d fill(true)
select b, i from root.cl.d fill(1970-01-01T00:00:00.005)
select b, i from root.cl.d order by b align by device
select b, i from root.cl.d order by b desc, time desc align by device
select b from root.cl.d where b in (1, 2)
select b from root.cl.d where b in ('one', 'two')
select b from root.cl.d where b between 0 and 5
select b from root.cl.d where b like '%o%'
select b from root.cl.d where b regexp '.*n.*'
select count(i) from root.cl.d group by variation(b)
select count(i) from root.cl.d group by count(b, 1)
select count(i) from root.cl.d group by condition(b is not null, keep >= 1)
select case when i > 1 then b end from root.cl.d
select b as z from root.cl.* align by device
select b into root.cl.into_b(b) from root.cl.d
select b from root.cl.into_b
show timeseries root.cl.into_b.*
select diff(b) from root.cl.d
select time_difference(b), change_points(b) from root.cl.d
select top_k(b, 'k'='1'), bottom_k(b, 'k'='1') from root.cl.d
select delete_me(b) from root.cl.d
select i, i from root.cl.d fill(previous)
select i, i from root.cl.d fill(linear)
select i, i from root.cl.d fill(previous, 1ms)
select i, i from root.cl.d fill(previous) order by time desc
select i, i from root.cl.d fill(3)
select i, i from root.cl.d fill(2.5)
select i, i from root.cl.d fill('w')
select i, i from root.cl.d fill(true)
select i, i from root.cl.d fill(1970-01-01T00:00:00.005)
select i, i from root.cl.d fill(X'3031')
select i, i from root.cl.d order by i align by device
select i, i from root.cl.d order by i desc, time desc align by device
select i from root.cl.d where i in (1, 2)
select i from root.cl.d where i in ('one', 'two')
select i from root.cl.d where i between 0 and 5
select i from root.cl.d where i like '%o%'
select i from root.cl.d where i regexp '.*n.*'
select count(i) from root.cl.d group by variation(i)
select count(i) from root.cl.d group by count(i, 1)
select count(i) from root.cl.d group by condition(i is not null, keep >= 1)
select case when i > 1 then i end from root.cl.d
select i as z from root.cl.* align by device
select i into root.cl.into_i(i) from root.cl.d
select i from root.cl.into_i
show timeseries root.cl.into_i.*
select diff(i) from root.cl.d
select time_difference(i), change_points(i) from root.cl.d
select top_k(i, 'k'='1'), bottom_k(i, 'k'='1') from root.cl.d
select delete_me(i) from root.cl.d
select l, i from root.cl.d fill(linear)
select l, i from root.cl.d fill(previous) order by time desc
select l, i from root.cl.d fill(2.5)
select l, i from root.cl.d fill('w')
select l, i from root.cl.d fill(true)
select l, i from root.cl.d order by l align by device
select l, i from root.cl.d order by l desc, time desc align by device
select l from root.cl.d where l in (1, 2)
select l from root.cl.d where l in ('one', 'two')
select l from root.cl.d where l between 0 and 5
select l from root.cl.d where l like '%o%'
select l from root.cl.d where l regexp '.*n.*'
select count(i) from root.cl.d group by variation(l)
select count(i) from root.cl.d group by count(l, 1)
select count(i) from root.cl.d group by condition(l is not null, keep >= 1)
select case when i > 1 then l end from root.cl.d
select l as z from root.cl.* align by device
select l into root.cl.into_l(l) from root.cl.d
select l from root.cl.into_l
show timeseries root.cl.into_l.*
select diff(l) from root.cl.d
select time_difference(l), change_points(l) from root.cl.d
select top_k(l, 'k'='1'), bottom_k(l, 'k'='1') from root.cl.d
select delete_me(l) from root.cl.d
select f, i from root.cl.d fill(previous)
select f, i from root.cl.d fill(linear)
select f, i from root.cl.d fill(previous, 1ms)
select f, i from root.cl.d fill(previous) order by time desc
select f, i from root.cl.d fill(3)
select f, i from root.cl.d fill(2.5)
select f, i from root.cl.d fill('w')
select f, i from root.cl.d fill(true)
select f, i from root.cl.d fill(1970-01-01T00:00:00.005)
select f, i from root.cl.d order by f align by device
select f, i from root.cl.d order by f desc, time desc align by device
select f from root.cl.d where f in (1, 2)
select f from root.cl.d where f in ('one', 'two')
select f from root.cl.d where f between 0 and 5
select f from root.cl.d where f like '%o%'
select f from root.cl.d where f regexp '.*n.*'
select count(i) from root.cl.d group by variation(f)
select count(i) from root.cl.d group by count(f, 1)
select count(i) from root.cl.d group by condition(f is not null, keep >= 1)
select case when i > 1 then f end from root.cl.d
select f as z from root.cl.* align by device
select f into root.cl.into_f(f) from root.cl.d
select f from root.cl.into_f
show timeseries root.cl.into_f.*
select diff(f) from root.cl.d
select time_difference(f), change_points(f) from root.cl.d
select top_k(f, 'k'='1'), bottom_k(f, 'k'='1') from root.cl.d
select delete_me(f) from root.cl.d
select d, i from root.cl.d fill(previous)
select d, i from root.cl.d fill(linear)
select d, i from root.cl.d fill(previous, 1ms)
select d, i from root.cl.d fill(previous) order by time desc
select d, i from root.cl.d fill(3)
select d, i from root.cl.d fill(2.5)
select d, i from root.cl.d fill('w')
select d, i from root.cl.d fill(true)
select d, i from root.cl.d fill(1970-01-01T00:00:00.005)
select d, i from root.cl.d order by d align by device
select d, i from root.cl.d order by d desc, time desc align by device
select d from root.cl.d where d in (1, 2)
select d from root.cl.d where d in ('one', 'two')
select d from root.cl.d where d between 0 and 5
select d from root.cl.d where d like '%o%'
select d from root.cl.d where d regexp '.*n.*'
select count(i) from root.cl.d group by variation(d)
select count(i) from root.cl.d group by count(d, 1)
select count(i) from root.cl.d group by condition(d is not null, keep >= 1)
select case when i > 1 then d end from root.cl.d
select d as z from root.cl.* align by device
select d into root.cl.into_d(d) from root.cl.d
select d from root.cl.into_d
show timeseries root.cl.into_d.*
select diff(d) from root.cl.d
select time_difference(d), change_points(d) from root.cl.d
select top_k(d, 'k'='1'), bottom_k(d, 'k'='1') from root.cl.d
select delete_me(d) from root.cl.d
select t, i from root.cl.d fill(previous)
select t, i from root.cl.d fill(linear)
select t, i from root.cl.d fill(previous, 1ms)
select t, i from root.cl.d fill(previous) order by time desc
select t, i from root.cl.d fill(3)
select t, i from root.cl.d fill(2.5)
select t, i from root.cl.d fill('w')
select t, i from root.cl.d fill(true)
select t, i from root.cl.d fill(1970-01-01T00:00:00.005)
select t, i from root.cl.d order by t align by device
select t, i from root.cl.d order by t desc, time desc align by device
select t from root.cl.d where t in (1, 2)
select t from root.cl.d where t in ('one', 'two')
select t from root.cl.d where t between 0 and 5
select t from root.cl.d where t like '%o%'
select t from root.cl.d where t regexp '.*n.*'
select count(i) from root.cl.d group by variation(t)
select count(i) from root.cl.d group by count(t, 1)
select count(i) from root.cl.d group by condition(t is not null, keep >= 1)
select case when i > 1 then t end from root.cl.d
select t as z from root.cl.* align by device
select t into root.cl.into_t(t) from root.cl.d
select t from root.cl.into_t
show timeseries root.cl.into_t.*
select diff(t) from root.cl.d
select time_difference(t), change_points(t) from root.cl.d
select top_k(t, 'k'='1'), bottom_k(t, 'k'='1') from root.cl.d
select delete_me(t) from root.cl.d
select s, i from root.cl.d fill(previous)
select s, i from root.cl.d fill(linear)
select s, i from root.cl.d fill(previous, 1ms)
select s, i from root.cl.d fill(previous) order by time desc
select s, i from root.cl.d fill(3)
select s, i from root.cl.d fill(2.5)
select s, i from root.cl.d fill('w')
select s, i from root.cl.d fill(true)
select s, i from root.cl.d fill(1970-01-01T00:00:00.005)
select s, i from root.cl.d order by s align by device
select s, i from root.cl.d order by s desc, time desc align by device
select s from root.cl.d where s in (1, 2)
select s from root.cl.d where s in ('one', 'two')
select s from root.cl.d where s between 0 and 5
select s from root.cl.d where s like '%o%'
select s from root.cl.d where s regexp '.*n.*'
select count(i) from root.cl.d group by variation(s)
select count(i) from root.cl.d group by count(s, 1)
select count(i) from root.cl.d group by condition(s is not null, keep >= 1)
select case when i > 1 then s end from root.cl.d
select s as z from root.cl.* align by device
select s into root.cl.into_s(s) from root.cl.d
select s from root.cl.into_s
show timeseries root.cl.into_s.*
select diff(s) from root.cl.d
select time_difference(s), change_points(s) from root.cl.d
select top_k(s, 'k'='1'), bottom_k(s, 'k'='1') from root.cl.d
select delete_me(s) from root.cl.d
select ts, i from root.cl.d fill(previous)
select ts, i from root.cl.d fill(linear)
select ts, i from root.cl.d fill(previous, 1ms)
select ts, i from root.cl.d fill(previous) order by time desc
select ts, i from root.cl.d fill(3)
select ts, i from root.cl.d fill(2.5)
select ts, i from root.cl.d fill('w')
select ts, i from root.cl.d fill(true)
select ts, i from root.cl.d fill(1970-01-01T00:00:00.005)
select ts, i from root.cl.d order by ts align by device
select ts, i from root.cl.d order by ts desc, time desc align by device
select ts from root.cl.d where ts in (1, 2)
select ts from root.cl.d where ts in ('one', 'two')
select ts from root.cl.d where ts between 0 and 5
select ts from root.cl.d where ts like '%o%'
select ts from root.cl.d where ts regexp '.*n.*'
select count(i) from root.cl.d group by variation(ts)
select count(i) from root.cl.d group by count(ts, 1)
select count(i) from root.cl.d group by condition(ts is not null, keep >= 1)
select case when i > 1 then ts end from root.cl.d
select ts as z from root.cl.* align by device
select ts into root.cl.into_ts(ts) from root.cl.d
select ts from root.cl.into_ts
show timeseries root.cl.into_ts.*
select diff(ts) from root.cl.d
select time_difference(ts), change_points(ts) from root.cl.d
select top_k(ts, 'k'='1'), bottom_k(ts, 'k'='1') from root.cl.d
select delete_me(ts) from root.cl.d
select da, i from root.cl.d fill(previous)
select da, i from root.cl.d fill(linear)
select da, i from root.cl.d fill(previous, 1ms)
select da, i from root.cl.d fill(previous) order by time desc
select da, i from root.cl.d fill(3)
select da, i from root.cl.d fill(2.5)
select da, i from root.cl.d fill('w')
select da, i from root.cl.d fill(true)
select da, i from root.cl.d fill(1970-01-01T00:00:00.005)
select da, i from root.cl.d order by da align by device
select da, i from root.cl.d order by da desc, time desc align by device
select da from root.cl.d where da in (1, 2)
select da from root.cl.d where da in ('one', 'two')
select da from root.cl.d where da between 0 and 5
select da from root.cl.d where da like '%o%'
select da from root.cl.d where da regexp '.*n.*'
select count(i) from root.cl.d group by variation(da)
select count(i) from root.cl.d group by count(da, 1)
select count(i) from root.cl.d group by condition(da is not null, keep >= 1)
select case when i > 1 then da end from root.cl.d
select da as z from root.cl.* align by device
select da into root.cl.into_da(da) from root.cl.d
select da from root.cl.into_da
show timeseries root.cl.into_da.*
select diff(da) from root.cl.d
select time_difference(da), change_points(da) from root.cl.d
select top_k(da, 'k'='1'), bottom_k(da, 'k'='1') from root.cl.d
select delete_me(da) from root.cl.d
select bl, i from root.cl.d fill(previous)
select bl, i from root.cl.d fill(linear)
select bl, i from root.cl.d fill(previous, 1ms)
select bl, i from root.cl.d fill(previous) order by time desc
select bl, i from root.cl.d fill(3)
select bl, i from root.cl.d fill(2.5)
select bl, i from root.cl.d fill('w')
select bl, i from root.cl.d fill(true)
select bl, i from root.cl.d fill(1970-01-01T00:00:00.005)
select bl, i from root.cl.d fill(X'3031')
select bl, i from root.cl.d order by bl align by device
select bl, i from root.cl.d order by bl desc, time desc align by device
select bl from root.cl.d where bl in (1, 2)
select bl from root.cl.d where bl in ('one', 'two')
select bl from root.cl.d where bl between 0 and 5
select bl from root.cl.d where bl like '%o%'
select bl from root.cl.d where bl regexp '.*n.*'
select count(i) from root.cl.d group by variation(bl)
select count(i) from root.cl.d group by count(bl, 1)
select count(i) from root.cl.d group by condition(bl is not null, keep >= 1)
select case when i > 1 then bl end from root.cl.d
select bl as z from root.cl.* align by device
select bl into root.cl.into_bl(bl) from root.cl.d
select bl from root.cl.into_bl
show timeseries root.cl.into_bl.*
select diff(bl) from root.cl.d
select time_difference(bl), change_points(bl) from root.cl.d
select top_k(bl, 'k'='1'), bottom_k(bl, 'k'='1') from root.cl.d
select delete_me(bl) from root.cl.d
