-- Databases, series, devices, templates, TTL: made, changed, shown, counted, removed.
show databases
count databases
show timeseries
show devices
show child paths
create database root.sc
create database root.sc
create database root.sc.below
create database root
create database sc
create database root.two.levels
create database root.two
set storage group to root.old
show databases root.sc
show databases root.two.*
show databases root.nothing
count databases
count databases root.two.**
count databases root.nothing
create timeseries root.sc.d1.a INT32
create timeseries root.sc.d1.a INT32
create timeseries root.sc.d1.a.below INT32
create timeseries root.sc.d1.b with datatype=FLOAT, encoding=RLE, compressor=SNAPPY
create timeseries root.sc.d1.c TEXT encoding=RLE
create timeseries root.sc.d1.c TEXT encoding=NOTHING
create timeseries root.sc.d1.c NOTHING
create timeseries root.sc.d1.c BOOLEAN compression=NOTHING
create timeseries root.sc.d1.c(ally) BOOLEAN encoding=PLAIN tags(k1=v1, k2='v 2') attributes(a1=b1)
create timeseries root.sc.d1.e(ally) INT64
create timeseries root.sc.d1.g(a) INT64
create timeseries root.sc.d1.h INT64 encoding=TS_2DIFF compression=ZSTD
create timeseries root.other.d.x INT64 encoding=GORILLA compression=LZ4
create timeseries root.sc.d1.`odd name` DOUBLE encoding=PLAIN
create timeseries root.sc.d1.5 DOUBLE encoding=PLAIN
create timeseries root.sc.d1.time DOUBLE
create timeseries root.sc.d1.* DOUBLE
create timeseries root INT32
create timeseries root.sc INT32
create timeseries d1.a INT32
create aligned timeseries root.sc.al(x INT32 encoding=PLAIN compressor=LZ4, y(yy) FLOAT encoding=GORILLA)
create aligned timeseries root.sc.al(x INT32)
create aligned timeseries root.sc.al(z BOOLEAN encoding=PLAIN)
create aligned timeseries root.sc.d1(q INT32)
create timeseries root.sc.al.w INT32
show timeseries root.sc.d1.a
show timeseries root.sc.d1.b
show timeseries root.sc.d1.c
show timeseries root.sc.d1.ally
show timeseries root.sc.d1.h
show timeseries root.sc.al.*
show timeseries root.sc.**
show timeseries root.nothing.**
show timeseries root.sc.** limit 2
show timeseries root.sc.** where tags(k1) = 'v1'
show timeseries root.sc.** where tags(k1) contains 'v'
show timeseries root.sc.** where tags(nothing) = 'v1'
show timeseries root.sc.** where datatype = 'FLOAT'
show timeseries root.sc.** where timeseries contains 'al'
show latest timeseries root.sc.al.*
count timeseries
count timeseries root.sc.**
count timeseries root.sc.d1.*
count timeseries root.nothing.**
count timeseries root.sc.** group by level=1
count timeseries root.sc.** group by level=2
count timeseries root.sc.** group by level=9
count timeseries root.sc.** where datatype = 'INT32'
count timeseries root.sc.** where tags(k1) = 'v1'
show devices root.sc.**
show devices root.nothing.**
show devices root.sc.** limit 1
show devices root.sc.** with database
show devices root.sc.d1 where device contains 'd'
count devices
count devices root.sc.**
count devices root.nothing
count nodes root.** level=1
count nodes root.sc.** level=2
count nodes root.sc.** level=3
count nodes root.** level=9
show child paths root
show child paths root.sc
show child paths root.sc.d1
show child paths root.nothing
show child nodes root
show child nodes root.sc
alter timeseries root.sc.d1.a add tags t1=1, t2=2
alter timeseries root.sc.d1.a add tags t1=1
alter timeseries root.sc.d1.a set t1=5
alter timeseries root.sc.d1.a set nothing=5
alter timeseries root.sc.d1.a rename t1 to t9
alter timeseries root.sc.d1.a rename nothing to t9
alter timeseries root.sc.d1.a drop t2
alter timeseries root.sc.d1.a drop nothing
alter timeseries root.sc.d1.a add attributes m=n
alter timeseries root.sc.d1.a upsert alias=alfa tags(t9=6, t3=7) attributes(m=o)
alter timeseries root.sc.d1.a upsert alias=ally
alter timeseries root.sc.nothing.a add tags t1=1
show timeseries root.sc.d1.a
show timeseries root.sc.** where tags(t9) = '6'
insert into root.sc.d1(time, alfa) values (1, 5)
select alfa from root.sc.d1
select a from root.sc.d1
delete timeseries root.sc.d1.b
delete timeseries root.sc.d1.b
drop timeseries root.sc.d1.h
delete timeseries root.nothing.**
show timeseries root.sc.d1.*
select * from root.sc.d1
delete timeseries root.sc.al.x
delete timeseries root.sc.al.*
show devices root.sc.**
set ttl to root.sc 3600000
set ttl to root.sc.d1 7200000
set ttl to root.nothing.** 1000
set ttl to root.sc.** -1
set ttl to root.a.*.b 1000
show ttl on root.sc.d1
show ttl on root.sc.**
show all ttl
unset ttl from root.sc.d1
unset ttl to root.sc.d1
unset ttl from root.sc.d1
show ttl on root.sc.d1
unset ttl from root.nothing.**
create database root.ttl with ttl=5000
create database root.ttl2 with nothing=5000
show databases root.ttl
alter database root.ttl with ttl=6000
alter database root.nothing with ttl=6000
create device template t1 (x INT32 encoding=PLAIN, y FLOAT encoding=PLAIN compressor=SNAPPY)
create device template t1 (x INT32)
create device template t2 aligned (x INT32 encoding=PLAIN, s TEXT encoding=PLAIN)
create device template t3 (x NOTHING)
create device template t3 (x INT32, x INT32)
create schema template t4 (z DOUBLE encoding=PLAIN)
show device templates
show nodes in device template t1
show nodes in device template t2
show nodes in device template nothing
show schema templates
create database root.tem
set device template t1 to root.tem.a
set device template t1 to root.tem.a
set device template t2 to root.tem.a
set device template t2 to root.tem.a.b
set device template nothing to root.tem.c
set device template t2 to root.tem.b
show paths set device template t1
show paths set device template nothing
show paths using device template t1
create timeseries using device template on root.tem.a.m1
create timeseries of device template on root.tem.a.m2
create timeseries using device template on root.tem.a.m1
create timeseries using device template on root.tem.c
show paths using device template t1
show timeseries root.tem.**
show devices root.tem.**
count timeseries root.tem.**
insert into root.tem.a.m1(time, x, y) values (1, 1, 1.5)
insert into root.tem.a.m3(time, x, y) values (1, 3, 3.5)
insert into root.tem.b.m1 aligned (time, x, s) values (1, 1, 'one')
select * from root.tem.a.*
select x from root.tem.**
select x from root.tem.** align by device
alter device template t4 add (w INT32 encoding=PLAIN)
alter device template t4 add (w INT32)
alter device template nothing add (w INT32)
show nodes in device template t4
drop device template t1
deactivate device template t1 from root.tem.a.m1
delete timeseries of device template t1 from root.tem.a.m2
deactivate device template t1 from root.tem.a.**
deactivate device template t1 from root.tem.a.**
show paths using device template t1
unset device template t1 from root.tem.a
unset device template t1 from root.tem.a
drop device template t1
drop device template t1
unset ttl from root.sc.**
unset ttl from root.sc
delete database root.tem
drop device template t2
drop device template t4
show device templates
delete database root.sc
delete database root.sc
drop database root.two.levels, root.old
delete storage group root.other
delete database root.nothing.**
show databases
unset ttl from root.ttl.**
unset ttl from root.ttl
show all ttl
