-- CAST of each type to each other: nulls, extremes, values without a counterpart.
create database root.cas
insert into root.cas.d(time,t,x) values (1,'a"b',1),(2,'it''s',2),(3,'fig',3)
create timeseries root.cas.d.s STRING encoding=PLAIN
create timeseries root.cas.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.cas.d.da DATE encoding=PLAIN
create timeseries root.cas.d.bl BLOB encoding=PLAIN
create timeseries root.cas.d.b BOOLEAN encoding=PLAIN
insert into root.cas.d(time,s,ts,da,bl,b) values (1,'1970-01-01',1000,'2024-01-02',X'3031',true),(2,'x',-1,'1999-12-31',X'ff00',false),(3,'2024-01-02',86400000,'1970-01-01',X'',true)
select cast(ts as TEXT) from root.cas.d
select cast(ts as STRING) from root.cas.d
select cast(ts as INT32) from root.cas.d
select cast(ts as INT64) from root.cas.d
select cast(ts as FLOAT) from root.cas.d
select cast(ts as DOUBLE) from root.cas.d
select cast(ts as BOOLEAN) from root.cas.d
select cast(ts as DATE) from root.cas.d
select cast(ts as BLOB) from root.cas.d
select cast(ts as TIMESTAMP) from root.cas.d
select cast(da as TEXT) from root.cas.d
select cast(da as STRING) from root.cas.d
select cast(da as INT32) from root.cas.d
select cast(da as INT64) from root.cas.d
select cast(da as FLOAT) from root.cas.d
select cast(da as DOUBLE) from root.cas.d
select cast(da as BOOLEAN) from root.cas.d
select cast(da as TIMESTAMP) from root.cas.d
select cast(da as BLOB) from root.cas.d
select cast(da as DATE) from root.cas.d
select cast(bl as TEXT) from root.cas.d
select cast(bl as STRING) from root.cas.d
select cast(bl as INT32) from root.cas.d
select cast(bl as BOOLEAN) from root.cas.d
select cast(bl as TIMESTAMP) from root.cas.d
select cast(bl as DATE) from root.cas.d
select cast(bl as BLOB) from root.cas.d
select cast(s as TEXT) from root.cas.d
select cast(s as BLOB) from root.cas.d
select cast(s as DATE) from root.cas.d where time != 2
select cast(s as DATE) from root.cas.d
select cast(s as TIMESTAMP) from root.cas.d where time != 2
select cast(s as TIMESTAMP) from root.cas.d
select cast(s as INT32) from root.cas.d
select cast(s as BOOLEAN) from root.cas.d
select cast(x as TIMESTAMP) from root.cas.d
select cast(x as DATE) from root.cas.d
select cast(x as BLOB) from root.cas.d
select cast(x as TEXT) from root.cas.d
select cast(b as TIMESTAMP) from root.cas.d
select cast(b as DATE) from root.cas.d
select cast(b as TEXT) from root.cas.d
select cast(b as FLOAT) from root.cas.d
create timeseries root.cas.e.i INT32 encoding=PLAIN
create timeseries root.cas.e.l INT64 encoding=PLAIN
create timeseries root.cas.e.f FLOAT encoding=PLAIN
create timeseries root.cas.e.t TEXT encoding=PLAIN
create timeseries root.cas.e.ts TIMESTAMP encoding=PLAIN
insert into root.cas.e(time,i,l,f,t,ts) values (1,20240102,86400000,1.5,'2024-01-02T03:04:05',253402300799999),(2,19991231,-1,-0.5,'12',1)
insert into root.cas.e(time,i,l,f,t,ts) values (3,20240230,99999999999999,3e38,'2024-02-30',9223372036854775807)
select cast(i as DATE) from root.cas.e where time < 3
select cast(l as DATE) from root.cas.e where time < 3
select cast(f as DATE) from root.cas.e where time < 3
select cast(i as DATE) from root.cas.e where time = 3
select cast(l as DATE) from root.cas.e where time = 3
select cast(i as TIMESTAMP) from root.cas.e where time < 3
select cast(l as TIMESTAMP) from root.cas.e where time < 3
select cast(f as TIMESTAMP) from root.cas.e where time < 3
select cast(f as TIMESTAMP) from root.cas.e where time = 3
select cast(t as TIMESTAMP) from root.cas.e where time = 1
select cast(t as TIMESTAMP) from root.cas.e where time = 2
select cast(t as TIMESTAMP) from root.cas.e where time = 3
select cast(t as DATE) from root.cas.e where time = 1
select cast(t as DATE) from root.cas.e where time = 3
select cast(ts as DATE) from root.cas.e where time < 3
select cast(ts as TEXT) from root.cas.e where time < 3
select cast(ts as TEXT) from root.cas.e where time = 3
select cast(ts as DATE) from root.cas.e where time = 3
select cast(ts as INT32) from root.cas.e where time = 3
select cast(l as INT32) from root.cas.e where time = 3
select cast(f as INT32) from root.cas.e where time = 3
select cast(f as INT64) from root.cas.e
select cast(t as INT64) from root.cas.e where time = 2
select cast(t as INT64) from root.cas.e where time = 1
select cast(t as DOUBLE) from root.cas.e where time = 1
select cast(t as FLOAT) from root.cas.e where time = 2
select cast(t as BOOLEAN) from root.cas.e where time = 2
select cast(i as BLOB) from root.cas.e where time = 2
select cast(i as TEXT) from root.cas.e where time = 2
create timeseries root.cas.tiny.d DOUBLE encoding=PLAIN
create timeseries root.cas.tiny.f FLOAT encoding=PLAIN
insert into root.cas.tiny(time,d,f) values (2,2e-323,3e-45),(3,5e-323,1e-44),(4,1e-5,1e-5),(6,2e300,2e30),(7,9e-310,1e-40)
select cast(d as TEXT), cast(f as TEXT) from root.cas.tiny
select last * from root.cas.tiny
