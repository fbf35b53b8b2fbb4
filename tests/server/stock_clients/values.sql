create timeseries root.val.d.b BOOLEAN
create timeseries root.val.d.i INT32
create timeseries root.val.d.l INT64
create timeseries root.val.d.f FLOAT
create timeseries root.val.d.d DOUBLE
create timeseries root.val.d.t TEXT
create timeseries root.val.d.s STRING
create timeseries root.val.d.ts TIMESTAMP
create timeseries root.val.d.da DATE
create timeseries root.val.d.bl BLOB
create aligned timeseries root.val.a(b BOOLEAN, i INT32, t TEXT, da DATE)
create timeseries root.val.named.speed FLOAT tags('unit'='m/s', 'place'='hall') attributes('maker'='x')
select last i, t from root.val.d
select count(i), sum(i), avg(d), max_value(i) from root.val.d
insert into root.val.d(time,b,i,l,f,d,t,s,ts,da,bl) values (1,true,1,10,1.5,2.25,'one','uno',1000,'2024-01-02',X'01')
insert into root.val.d(time,b,i,l,f,d,t,s,ts,da,bl) values (2,false,-2,-20,-0.5,-0.25,'two','dos',-1000,'1999-12-31',X'0a41')
insert into root.val.d(time,b,i,l,f,d,t,s,ts,da,bl) values (3,true,2147483647,9223372036854775807,3.4028235E38,1.7976931348623157E308,'','',0,'1970-01-01',X'')
insert into root.val.d(time,b,i,l,f,d,t,s,ts,da,bl) values (4,false,-2147483648,-9223372036854775808,1.4E-45,4.9E-324,'ä€𝄞','naïve',4102444800000,'9999-12-31',X'ff00')
insert into root.val.d(time,i) values (5,7)
insert into root.val.d(time,b,t,da) values (6,true,'six','2024-02-29')
insert into root.val.d(time,l,f,s) values (7,70,0.125,'siete')
insert into root.val.d(time,d,ts,bl) values (8,0.1,1709164800000,X'00')
insert into root.val.d(time,f,d) values (9,NaN,NaN)
insert into root.val.a(time,b,i,t,da) aligned values (1,true,1,'x','2024-01-01'), (2,null,2,null,null), (3,false,null,'z',null)
insert into root.val.named(time,speed) values (1,0.5)
select b, i, l, f, d, t, s, ts, da, bl from root.val.d
select bl, da, ts, s, t, d, f, l, i, b from root.val.d where time <= 4
select b from root.val.d
select i from root.val.d
select l from root.val.d
select f from root.val.d
select d from root.val.d
select t from root.val.d
select s from root.val.d
select ts from root.val.d
select da from root.val.d
select bl from root.val.d
select b, i, t, da from root.val.a
select b, i from root.val.d where time > 100
select b, i, l, f, d, t, s, ts, da, bl from root.val.d where time > 100
select i, i from root.val.d where time < 3
select i as n, t as `a text` from root.val.d where time < 3
select i + 1, i + l, f * 2, d / 2, -i, i > 0, t = 'one', not b from root.val.d where time < 3
select cast(i as TEXT), cast(t as STRING), cast(b as INT32), cast(ts as INT64), cast(i as BOOLEAN) from root.val.d where time < 3
select sin(d), abs(i), round(d, 1), upper(t), length(t) from root.val.d where time < 3
select case when i > 0 then t else 'none' end from root.val.d where time < 3
select b is null, i is not null, t like 'o%', t in ('one', 'six') from root.val.d where time < 7
select diff(i), time_difference(i) from root.val.d where time < 3
select b, i, da from root.val.* align by device
select i, t from root.val.d, root.val.a align by device
select i from root.val.d where time > 100 align by device
select count(b), count(i), count(t), count(bl) from root.val.d
select count(b), count(t) from root.val.d where time > 100
select sum(i), avg(i), avg(l) from root.val.d where time < 3
select max_value(s), max_value(i), max_value(l), max_value(f), max_value(d) from root.val.d where time < 5
select min_value(i), min_value(s), min_value(ts), min_value(da) from root.val.d where time < 5
select first_value(b), first_value(i), first_value(t), first_value(s), first_value(ts), first_value(da), first_value(bl) from root.val.d
select last_value(b), last_value(i), last_value(t), last_value(s), last_value(ts), last_value(da), last_value(bl) from root.val.d
select max_time(b), min_time(t), max_time(bl) from root.val.d
select max_value(i), avg(i), first_value(t), last_value(bl), max_time(i) from root.val.d where time > 100
select stddev(i), variance(i), extreme(i), mode(i), time_duration(i) from root.val.d where time < 3
select max_by(t, i), min_by(da, i), max_by(i, d) from root.val.d where time < 5
select count_if(i > 0, 1), sum(i + 1) from root.val.d where time < 3
select count(i), avg(i), first_value(t), last_value(b) from root.val.d group by ([0, 20), 5ms)
select __endTime, count(i) from root.val.d group by ([0, 20), 5ms)
select last_value(da), last_value(ts), last_value(bl) from root.val.d group by ([0, 20), 5ms)
select count(i) from root.val.d group by ([0, 20), 5ms) having count(i) > 1
select avg(i) from root.val.d group by ([0, 20), 5ms) fill(0)
select first_value(i), first_value(da) from root.val.d group by ([0, 20), 2ms) fill(previous)
select count(i) from root.val.d, root.val.a group by ([0, 10), 5ms) align by device
select count(i) from root.val.** group by level = 1
select count(speed) from root.val.** group by tags(unit)
select i from root.val.d fill(previous)
select i, t from root.val.d where time < 9 fill(previous)
select i from root.val.d order by time desc limit 2
select i, t from root.val.d limit 2 offset 3
select i, t, b from root.val.d where time < 3 slimit 1 soffset 1
select last b, i, l, f, d, t, s, ts, da, bl from root.val.d
select last i from root.val.d, root.val.a order by timeseries
select last i from root.val.d where time > 100
select i, t into root.val.copy(i, t) from root.val.d where time < 3
select i into root.val.copy(i) from root.val.d where time > 100
show databases root.v*
show databases root.val
show databases root.nothing
show databases details root.val
count databases root.val
show devices root.val.**
show devices root.val.d with database
count devices root.val.**
show timeseries root.val.d.*
show timeseries root.val.a.*
show timeseries root.val.named.*
show timeseries where tags(unit) = 'm/s'
show timeseries root.nothing.**
show latest timeseries root.val.named.*
count timeseries root.val.**
count timeseries root.val.** group by level = 2
count nodes root.val.** level = 2
show child paths root.val
show child nodes root.val
set ttl to root.val.named 3600000
show ttl on root.val.named
unset ttl from root.val.named
show all ttl
create device template tpl (x INT32, y TEXT)
show device templates
show nodes in device template tpl
set device template tpl to root.val.byname
show paths set device template tpl
create timeseries using device template on root.val.byname
show paths using device template tpl
show timeseries root.val.byname.*
select x, y from root.val.byname
count timeseries root.val.byname.*
list role
create role reader
grant READ_DATA on root.val.** to role reader
list role
list privileges of role reader
create user anna 'anna1234567X!'
grant role reader to anna
list role of user anna
list privileges of user anna
drop user anna
drop role reader
show version
show functions
show triggers
show continuous queries
show queries
show cluster
show regions
show datanodes
show variables
explain select i from root.val.d
selec
select
select i from root.val.d where
select nothing from root.val.d
select nothing(i) from root.val.d
select i + t from root.val.d
select i from root.val.d where i
select count(i), i from root.val.d
select i from val.d
select i from root.val.d group by ([0, 10), 0ms)
insert into root.val.d(time,i) values (1,'x')
insert into root.val.d(time,i,t) values (1,1)
insert into root.val.d(time,da) values (1,'yesterday')
insert into root.val.a(time,i) aligned values (1,99999999999)
insert into val.d(time,i) values (1,1)
create timeseries root.val.d.i INT32
create timeseries root.val.d.q NOTHING
create timeseries root.val.d.q BOOLEAN encoding=GORILLA
create timeseries root.val.d.i.x INT32
create database root.val
create database root.val.sub
create database val
delete timeseries root.val.d.nothing
delete from root.nothing.d.i where time < 3
delete database root.nothing
create user anna 'anna1234567X!'
create user anna 'anna1234567X!'
drop user anna
drop user nobody
grant READ_DATA on root.val.** to user nobody
grant NOTHING on root.val.** to user root
revoke READ_DATA on root.val.** from user nobody
create device template tpl (x INT32)
drop device template nothing
load 'nothing.tsfile'
delete from root.val.d.i where time = 5
select i from root.val.d where time = 5
alter timeseries root.val.named.speed add tags t2=v2
show timeseries root.val.named.*
delete timeseries root.val.d.bl
select bl from root.val.d
delete database root.val
select i from root.val.d
drop device template tpl
