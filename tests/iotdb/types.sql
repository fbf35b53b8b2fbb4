-- The ten types: their values, nulls, extremes, comparisons, and conversions.
create database root.typ
create timeseries root.typ.d.b BOOLEAN encoding=PLAIN
create timeseries root.typ.d.i INT32 encoding=PLAIN
create timeseries root.typ.d.l INT64 encoding=PLAIN
create timeseries root.typ.d.f FLOAT encoding=PLAIN
create timeseries root.typ.d.d DOUBLE encoding=PLAIN
create timeseries root.typ.d.t TEXT encoding=PLAIN
create timeseries root.typ.d.s STRING encoding=PLAIN
create timeseries root.typ.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.typ.d.da DATE encoding=PLAIN
create timeseries root.typ.d.bl BLOB encoding=PLAIN
select * from root.typ.d
insert into root.typ.d(time,b,i,l,f,d,t,s,ts,da,bl) values (1,true,1,10,1.5,2.25,'one','uno',1000,'2024-01-02',X'01')
insert into root.typ.d(time,b,i,l,f,d,t,s,ts,da,bl) values (2,false,-2,-20,-0.1,-0.1,'two','dos',-1000,'1999-12-31',X'0a41')
insert into root.typ.d(time,b,i,l,f,d,t,s,ts,da,bl) values (3,true,2147483647,9223372036854775807,3.4028235E38,1.7976931348623157E308,'','',0,'1970-01-01',X'')
insert into root.typ.d(time,b,i,l,f,d,t,s,ts,da,bl) values (4,false,-2147483648,-9223372036854775808,1.4E-45,4.9E-324,'ä€𝄞','naïve',253402300799999,'9999-12-31',X'ff00')
insert into root.typ.d(time,i) values (5,7)
insert into root.typ.d(time,t,s) values (6,'it''s','say "hi"')
insert into root.typ.d(time,b,f) values (7,true,NaN)
insert into root.typ.d(time,b,i) values (8,null,8)
select * from root.typ.d
select b,i,l from root.typ.d
select f,d from root.typ.d
select t,s from root.typ.d
select ts,da,bl from root.typ.d
select bl,da,ts,s,t,d,f,l,i,b from root.typ.d where time >= 2 and time < 5
select last * from root.typ.d
select last i, t from root.typ.d
show timeseries root.typ.d.*
select b from root.typ.d where b
select b from root.typ.d where not b
select b from root.typ.d where b = true
select b from root.typ.d where b != true
select i from root.typ.d where i > 1
select i from root.typ.d where i >= 2147483647
select i from root.typ.d where i < -1
select i from root.typ.d where i between -2 and 7
select i from root.typ.d where i not between -2 and 7
select i from root.typ.d where i in (1, 7, 9)
select i from root.typ.d where i not in (1, 7, 9)
select i from root.typ.d where i is null
select i,t from root.typ.d where t is null
select i,t from root.typ.d where t is not null
select l from root.typ.d where l > 9
select l from root.typ.d where l = 9223372036854775807
select f from root.typ.d where f > 1
select f from root.typ.d where f = 1.5
select d from root.typ.d where d < 0
select d from root.typ.d where d = 2.25
select t from root.typ.d where t = 'one'
select t from root.typ.d where t != 'one'
select t from root.typ.d where t > 'one'
select t from root.typ.d where t = ''
select s from root.typ.d where s = 'dos'
select s from root.typ.d where s in ('uno', 'dos')
select s from root.typ.d where s like 'n%'
select t from root.typ.d where t like '%w%'
select t from root.typ.d where t like '_wo'
select t from root.typ.d where t not like 't%'
select t from root.typ.d where t regexp '^[a-z]+$'
select t from root.typ.d where t not regexp '^[a-z]+$'
select ts from root.typ.d where ts > 0
select ts from root.typ.d where ts = 1000
select da from root.typ.d where da = '2024-01-02'
select da from root.typ.d where da > '2000-01-01'
select bl from root.typ.d where bl = X'01'
select i = l from root.typ.d
select i < d from root.typ.d
select t = s from root.typ.d
select i + 1 from root.typ.d where time < 3
select i + l from root.typ.d where time < 3
select i + f from root.typ.d where time < 3
select l * d from root.typ.d where time < 3
select f - d from root.typ.d where time < 3
select i / 2 from root.typ.d where time < 3
select l % 3 from root.typ.d where time < 3
select d % 2 from root.typ.d where time < 3
select f / 0 from root.typ.d where time < 3
select -i from root.typ.d where time < 3
select -f from root.typ.d where time < 3
select !b from root.typ.d where time < 3
select b and i > 0 from root.typ.d
select b or i > 0 from root.typ.d
select t + 1 from root.typ.d
select b + 1 from root.typ.d
select da + 1 from root.typ.d
select bl + 1 from root.typ.d
select -t from root.typ.d
select !i from root.typ.d
select i and b from root.typ.d
select i from root.typ.d where i
select i from root.typ.d where t > 1
select i from root.typ.d where i = 'x'
select cast(i as INT64) from root.typ.d where time < 3
select cast(i as FLOAT) from root.typ.d where time < 3
select cast(i as DOUBLE) from root.typ.d where time < 3
select cast(i as BOOLEAN) from root.typ.d where time < 3
select cast(i as TEXT) from root.typ.d where time < 3
select cast(i as STRING) from root.typ.d where time < 3
select cast(i as INT32) from root.typ.d where time < 3
select cast(l as INT32) from root.typ.d where time < 3
select cast(l as FLOAT) from root.typ.d where time < 3
select cast(l as TEXT) from root.typ.d
select cast(l as TIMESTAMP) from root.typ.d where time < 3
select cast(l as INT32) from root.typ.d
select cast(f as INT32) from root.typ.d where time < 3
select cast(f as INT64) from root.typ.d where time < 3
select cast(f as DOUBLE) from root.typ.d where time < 3
select cast(f as BOOLEAN) from root.typ.d where time < 3
select cast(f as TEXT) from root.typ.d where time < 3
select cast(d as INT32) from root.typ.d where time < 3
select cast(d as INT64) from root.typ.d where time < 3
select cast(d as FLOAT) from root.typ.d where time < 3
select cast(d as TEXT) from root.typ.d
select cast(d as STRING) from root.typ.d where time < 3
select cast(b as INT32) from root.typ.d where time < 3
select cast(b as INT64) from root.typ.d where time < 3
select cast(b as FLOAT) from root.typ.d where time < 3
select cast(b as DOUBLE) from root.typ.d where time < 3
select cast(b as TEXT) from root.typ.d where time < 3
select cast(t as INT32) from root.typ.d where time < 3
select cast(t as STRING) from root.typ.d where time < 3
select cast(t as BOOLEAN) from root.typ.d where time < 3
select cast(t as BLOB) from root.typ.d where time < 3
select cast(s as TEXT) from root.typ.d where time < 3
select cast(ts as INT64) from root.typ.d where time < 3
select cast(ts as TEXT) from root.typ.d where time < 3
select cast(ts as DATE) from root.typ.d where time < 3
select cast(da as INT32) from root.typ.d where time < 3
select cast(da as INT64) from root.typ.d where time < 3
select cast(da as TEXT) from root.typ.d where time < 3
select cast(da as TIMESTAMP) from root.typ.d where time < 3
select cast(bl as TEXT) from root.typ.d where time < 3
select cast(i as NOTHING) from root.typ.d
select cast(i) from root.typ.d
insert into root.typ.d(time,i) values (20,2147483648)
insert into root.typ.d(time,i) values (20,1.5)
insert into root.typ.d(time,i) values (20,'x')
insert into root.typ.d(time,i) values (20,true)
insert into root.typ.d(time,l) values (20,9223372036854775808)
insert into root.typ.d(time,b) values (20,2)
insert into root.typ.d(time,b) values (20,'yes')
insert into root.typ.d(time,b) values (20,'true')
insert into root.typ.d(time,f) values (20,'x')
insert into root.typ.d(time,f) values (20,1e39)
insert into root.typ.d(time,d) values (20,1e400)
insert into root.typ.d(time,t) values (20,5)
insert into root.typ.d(time,s) values (20,true)
insert into root.typ.d(time,da) values (20,20240230)
insert into root.typ.d(time,da) values (20,'2024-13-01')
insert into root.typ.d(time,da) values (20,'2024-02-29')
insert into root.typ.d(time,ts) values (20,2024-01-01T00:00:00)
insert into root.typ.d(time,ts) values (20,now())
insert into root.typ.d(time,bl) values (20,'text')
insert into root.typ.d(time,bl) values (20,X'0')
select b,i,l,f,d,t,s,da,bl from root.typ.d where time = 20
