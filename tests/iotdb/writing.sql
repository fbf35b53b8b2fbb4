-- INSERT, DELETE, SELECT INTO, and their faults.
create database root.wr
insert into root.wr.d(time, a) values (1, 1)
insert into root.wr.d(timestamp, a) values (2, 2)
insert into root.wr.d(time, a, b, c) values (3, 3.5, 'x', true)
insert into root.wr.d(time, a, b) values (4, 4, 'y'), (5, 5, null), (6, null, 'z')
insert into root.wr.now(a) values (1)
insert into root.wr.d(time, a) values (7, 7, 8)
insert into root.wr.d(time, a, b) values (7, 7)
insert into root.wr.d(time, a, a) values (7, 7, 8)
insert into root.wr.d(time) values (7)
insert into root.wr.d values (7, 7)
insert into root.wr.d(time, a) values ('x', 7)
insert into root.wr.d(time, a) values (null, 7)
insert into root.wr.d(time, b) values (8, 'it''s'), (9, "double ""quotes""")
insert into root.wr.d(time, c) values (8, TRUE), (9, False)
insert into root.wr.d(time, c) values (10, 'maybe')
insert into root.wr.d(time, a) values (1970-01-01T00:00:00.011, 11)
insert into root.wr.d(time, a) values (1970-01-01T00:00:00.012+00:00, 12)
insert into root.wr.d(time, a) values (1970-01-01 00:00:00.013, 13)
insert into root.wr.d(time, a) values (1970/01/01T00:00:00.014, 14)
insert into root.wr.d(time, a) values (1970-01-01, 0)
insert into root.wr.d(time, a) values (-5, -5)
insert into root.wr.d(time, a) values (15, 1.5e3)
insert into root.wr.d(time, a) values (16, -1.5E-3)
insert into root.wr.d(time, a) values (17, +5)
insert into root.wr.d(time, a) values (18, NaN)
insert into root.wr.d(time, a) values (1, 100)
insert into root.wr.d(time, a) values (2, null)
insert into root.wr.d(time, newone) values (3, null)
insert into root.wr.*(time, a) values (1, 1)
insert into root.nowhere.d(time, a) values (1, 1)
insert into root.wr.d.a(time, x) values (1, 1)
insert into root.wr(time, x) values (1, 1)
insert into root(time, x) values (1, 1)
insert into wr.d(time, x) values (1, 1)
insert into root.wr.`odd name`(time, `a.b`) values (1, 1)
insert into root.wr.d(time, a) value (20, 20)
insert into root.wr.d(time, a) values (21, 1 + 1)
insert into root.wr.d(time, a values (21, 1)
insert into root.wr.d(time, a) values
insert root.wr.d(time, a) values (22, 1)
select * from root.wr.d
select * from root.wr.`odd name`
show timeseries root.wr.d.*
show timeseries root.nowhere.**
insert into root.wr.al aligned (time, x, y) values (1, 1, 'a'), (2, null, 'b'), (3, 3, null)
insert into root.wr.al(time, x) values (4, 4)
insert into root.wr.al aligned (time, z) values (5, true)
insert into root.wr.d aligned (time, a) values (30, 30)
insert into root.wr.al aligned (time, x) values (6, 'text')
insert into root.wr.al aligned (time, x, y) values (7, 7, 'c'), (7, 8, 'd')
select * from root.wr.al
delete from root.wr.d.a where time = 3
delete from root.wr.d.a where time <= 1
delete from root.wr.d.a where time > 10 and time < 13
delete from root.wr.d.* where time = 4
delete from root.wr.d.b, root.wr.d.c where time >= 8
delete from root.wr.d.a where time > 5 or time < 2
delete from root.wr.d.a where a > 5
delete from root.wr.d.nothing where time > 5
delete from root.nothing.** where time > 5
delete from root.wr.d.a where time in (13, 14)
select * from root.wr.d
delete from root.wr.al.x where time < 3
delete from root.wr.al.* where time = 5
select * from root.wr.al
delete from root.wr.d.b
select b from root.wr.d
count timeseries root.wr.d.*
insert into root.wr.src(time, i, f, t) values (1, 1, 1.5, 'a'), (2, 2, 2.5, 'b'), (3, 3, 3.5, 'c')
select i into root.wr.dst(i2) from root.wr.src
select i, f into root.wr.dst(i3, f3) from root.wr.src
select i, f into root.wr.dst(one) from root.wr.src
select i into root.wr.dst(i2), root.wr.dst(i4) from root.wr.src
select * into root.wr.copy(::) from root.wr.src
select i into root.wr.${2}_made(${3}_new) from root.wr.src
select i into aligned root.wr.dsta(i) from root.wr.src
select count(i), sum(f) into root.wr.agg(n, total) from root.wr.src
select count(i) into root.wr.agg2(n) from root.wr.src group by ([0, 4), 2ms)
select i + 1 into root.wr.dst(plus) from root.wr.src
select i into root.wr.dst(i2) from root.wr.src where time > 100
select nothing into root.wr.dst(x) from root.wr.src
select i, f into root.wr.dev(a, b) from root.wr.src align by device
select i into root.wr.src(i) from root.wr.src
select t into root.wr.dst(i2) from root.wr.src
select last i into root.wr.dst(x) from root.wr.src
select i into root.wr.dst(x) from root.wr.src limit 1
select i2, i3, f3, plus from root.wr.dst
select * from root.wr.copy
select * from root.wr.src_made
select * from root.wr.dsta
select * from root.wr.agg, root.wr.agg2
select * from root.wr.dev
show devices root.wr.**
flush
flush root.wr
flush root.nothing
clear cache
delete from root.**
select * from root.wr.src
