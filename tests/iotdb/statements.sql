-- Privileges, template series, literals of INSERT, codes of errors; continuous queries, LOAD.
create database root.gap
create aligned timeseries root.gap.q(a INT32 encoding=PLAIN)
create timeseries root.gap.q.b FLOAT encoding=PLAIN
create timeseries root.gap.r.a INT32 encoding=PLAIN
create aligned timeseries root.gap.r(b FLOAT encoding=PLAIN)
show timeseries root.gap.**
show devices root.gap.**
create role opsrole
grant READ_DATA on root.plant.** to role opsrole
list privileges of role opsrole
list role
create user ivoivo 'Root-Password-1'
grant USE_CQ on root.** to user ivoivo
grant USE_PIPE on root.** to user ivoivo
grant EXTEND_TEMPLATE on root.** to user ivoivo
grant USE_MODEL on root.** to user ivoivo
grant USE_TRIGGER on root.** to user ivoivo
grant USE_UDF on root.** to user ivoivo
grant MANAGE_USER on root.** to user ivoivo
grant MANAGE_USER on root.a to user ivoivo
grant READ_DATA, WRITE_DATA on root.gap.** to user ivoivo
grant READ on root.b.** to user ivoivo with grant option
grant WRITE on root.c.** to user ivoivo
grant NOTHING on root.c.** to user ivoivo
grant READ_DATA on root.*.x to user ivoivo
grant READ_DATA on root.x to user ivoivo
list privileges of user ivoivo
grant role opsrole to ivoivo
list privileges of user ivoivo
list role of user ivoivo
revoke READ_DATA on root.gap.** from user ivoivo
revoke READ_DATA on root.gap.** from user ivoivo
revoke READ on root.zzz.** from user ivoivo
revoke role opsrole from ivoivo
revoke role opsrole from ivoivo
grant ALL on root.** to role opsrole
list privileges of role opsrole
revoke ALL on root.** from role opsrole
list privileges of role opsrole
drop role opsrole
drop role opsrole
create user ivoivo 'Root-Password-1'
create role ivoivo
drop user nobodyatall
alter user ivoivo set password 'Root-Password-2'
alter user nobodyatall set password 'Root-Password-2'
grant role nothingrole to ivoivo
grant READ_DATA on root.** to user nobodyatall
list privileges of user nobodyatall
list privileges of role nothingrole
list role of user nobodyatall
drop user ivoivo
create database root.f
create device template tt (x INT32 encoding=PLAIN, y FLOAT encoding=PLAIN)
set device template tt to root.f
insert into root.f.a(time,x,y) values(1,1,2)
select x,nope,y from root.f.* align by device
select x,nope,y from root.f.*
create timeseries of device template on root.f.a
alter timeseries root.f.a.x upsert alias=foo
alter timeseries root.f.a.x add tags a=b
insert into root.f.a(time,z) values(2,5)
select * from root.f.a
show timeseries root.f.**
insert into root.gap.m.d(time,a,b,ma,mb) values (1,1.5,2.5,1,2),(2,2.25,3.5,2,3),(3,9,4.5,3,4),(4,4.5,5,4,5)
select master_repair(a,b,ma,mb) from root.gap.m.d
select master_repair(a,b,ma,mb,'output_column'='2') from root.gap.m.d
select count(x) as n, count(x) as m from root.f.** group by level=1
select count(x) as n, count(y) as n from root.f.** group by level=1
delete timeseries root.gap.q.a, root.gap.zzz.**
show timeseries root.gap.q.**
drop database root.f, root.zzz
show databases
create timeseries root.gap.o.f FLOAT encoding=PLAIN
create timeseries root.gap.o.i INT32 encoding=PLAIN
create timeseries root.gap.o.t TEXT encoding=PLAIN
create timeseries root.gap.o.s STRING encoding=PLAIN
create timeseries root.gap.o.da DATE encoding=PLAIN
create timeseries root.gap.o.ts TIMESTAMP encoding=PLAIN
create timeseries root.gap.o.bl BLOB encoding=PLAIN
create timeseries root.gap.o.b BOOLEAN encoding=PLAIN
insert into root.gap.o(time,f,i,t,s,da,ts,bl,b) values(1,0.1,1,'a%b','x','2024-01-02',100,X'02',true),(2,16777216,3,'a\\b','y_','1999-12-31',200,X'0a41',false),(3,1.5,4,'a_b','%','2024-02-29',0,X'',true),(4,2,5,null,null,null,null,null,null)
select on_off(f,'threshold'='16777217') from root.gap.o
select in_range(f,'lower'='0','upper'='0.1') from root.gap.o
select count(i) from root.gap.o group by condition(i > 2, 2)
select count(i) from root.gap.o group by condition(i > 2, keep != 3)
select count(i) from root.gap.o group by condition(i > 2)
select count(i), __endTime from root.gap.o group by condition(i > 2, keep >= 1)
select concat(t,'-',s), t = 'fig', t between 'a' and 'p' from root.gap.o
select last i as x from root.gap.o
select last da from root.gap.o
select last bl from root.gap.o
select last ts from root.gap.o
select cast(ts as TEXT) from root.gap.o
select t from root.gap.o where t like 'a\%b'
select t from root.gap.o where t like 'a\_b'
select t from root.gap.o where t like '%\%'
select t from root.gap.o where t like '%\\%'
select t from root.gap.o where t like 'a\%b' escape '\'
select t from root.gap.o where t like 'a_b'
select t from root.gap.o where t like 'a$_b' escape '$'
select t from root.gap.o where t like ''
select t from root.gap.o where t like '%'
create timeseries root.gap.x.da DATE encoding=PLAIN
create timeseries root.gap.x.ts TIMESTAMP encoding=PLAIN
create timeseries root.gap.x.s STRING encoding=PLAIN
create timeseries root.gap.x.i INT32 encoding=PLAIN
create timeseries root.gap.x.f FLOAT encoding=PLAIN
insert into root.gap.x(time,da) values(12,2024-02-29)
insert into root.gap.x(time,da) values(12,'20240101')
insert into root.gap.o(time,da) values(12,20240101)
insert into root.gap.x(time,da) values(13,'2023-02-29')
insert into root.gap.x(time,i) values(2024-02-30T00:00:00,1)
insert into root.gap.x(time,ts) values(14,'2024-01-01T00:00:00')
insert into root.gap.o(time,ts) values(14,2024-01-01T00:00:00)
insert into root.gap.o(time,ts) values(14,1.5)
insert into root.gap.o(time,ts) values(14,true)
insert into root.gap.x(time,i) values('2024-01-01',1)
select i from root.gap.o where time >= '2024-01-01'
insert into root.gap.x(time,s) values(15,X'41')
insert into root.gap.o(time,bl) values(15,"X'00'")
insert into root.gap.x(time,f) values(16,Infinity)
insert into root.gap.x(time,f) values(16,-Infinity)
insert into root.gap.o(time,f) values(16,NaN)
insert into root.gap.o(time,f) values(17,'1.5')
insert into root.gap.o(time,i) values(17,'15')
insert into root.gap.o(time,t) values(18,true)
insert into root.gap.o(time,t) values(18,1.50)
insert into root.gap.o(time,b) values(18,1)
insert into root.gap.o(time,b) values(18,0)
insert into root.gap.o(time,b) values(18,'TRUE')
select * from root.gap.o where time > 10
select i into root.gap.o2(i) from root.gap.o
select i into root.gap.o3(::) from root.gap.o align by device
count databases
count databases root.**
count timeseries root.gap.o.*
count devices root.gap.o*
count nodes root.gap.** level=2
show triggers
show ttl on root.gap.o
show continuous queries
show cqs
select i from root.gap.o slimit 1 soffset 9
select i,f from root.gap.o slimit 1 soffset 2
select count(i) as n, n from root.gap.o
select count(i) as n, n + 1 from root.gap.o
select last i, f from root.gap.o fill(previous)
select count(*), max_value(i) from root.gap.o group by level=1
select count(*), max_value(i) from root.gap.o group by level=1,2
select count(top_k(i,'k'='2')) from root.gap.o
select case when b then ts else da end from root.gap.o
select case when b then t else s end from root.gap.o
select case when b then i else f end from root.gap.o
select case when b then i else t end from root.gap.o
create database root.`a b`
create database root.`a`
insert into root.gap.ä(time,x) values(1,1)
insert into root.gap.中文(time,x) values(1,1)
select * from root.gap.中文
select round(f,20) from root.gap.o
select i + null from root.gap.o
select i = null from root.gap.o
select i in (1,null) from root.gap.o
select i from root.gap.o where 1 < 2
select ts + 1 from root.gap.o
select ts + ts from root.gap.o
select -ts from root.gap.o
select mode(ts) from root.gap.o
select count(i) from root.gap.o group by variation(s)
select count(i) from root.gap.o group by variation(ts)
select count(i) from root.gap.o group by variation(t)
select i from root.gap.o align by device order by time
select i from root.gap.o align by device limit 1
show devices root.gap.** order by device
show timeseries root.gap.** order by timeseries
create timeseries root.gap.below.a INT32
create timeseries root.gap.below.a.b INT32
create database root.gap.nested
create database root
create database root.gap
drop database root.missing
alter database root.missing with ttl=5
create timeseries root.gap.o.new(i) INT32
create timeseries root.gap.below.x(al1) INT32
create timeseries root.gap.below.y(al1) INT32
set device template missing to root.gap.x
set ttl to root.gap.*.b 1000
create cq cq1 begin select count(i) into root.gap.cq(n) from root.gap.o group by (1s) end
create cq cq1 resample every 30m begin select count(i) into root.gap.cq(n) from root.gap.o group by (30m) end
create cq cq1 resample every 30m begin select count(i) into root.gap.cq(n) from root.gap.o group by (30m) end
show cqs
create cq cq2 begin select count(i) from root.gap.o group by (30m) end
create cq cq2 begin select i into root.gap.cq(n) from root.gap.o end
create cq cq3 resample every 10ms begin select count(i) into root.gap.cq(n) from root.gap.o group by (30m) end
drop cq cq1
drop cq cq1
kill query '20200101_000000_00000_1'
kill query 'nonsense'
kill all queries
load '/tmp/nothing-here'
load '/tmp/nothing-here' with ('on-success'='none')
load '/tmp/nothing-here' with ('model'='tree')
drop function nothing_here
create function nothing_here as 'org.nothing.Here'
drop trigger nothing_here
create trigger tr1 stateless before insert on root.gap.** as 'org.nothing.Here'
select avg(i) from root.gap.o group by ([1970-01-01,1970-01-13),1s) limit 3
select avg(i) from root.gap.o group by ([0,10),1ms) limit 3 offset 1
select count(i) from root.gap.o group by ([0,20),5ms) having count(i) > 0 limit 1
show timeseries root.gap.o.* where timeseries contains 'zz'
set system to readonly
insert into root.gap.o(time,i) values(30,1)
set system to running
flush root.gap
drop role ivoivo
delete database root.**
drop device template tt
load '/tmp/nothing-here' with ('convert-on-type-mismatch'='true')
load '/tmp/nothing-here' with ('async'='true')
load '/tmp/nothing-here' with ('tablet-conversion-threshold'='1000')
load '/tmp/nothing-here' with ('model'='tree','verify'='false','database-level'='2')
load '/tmp/nothing-here' with ('nothing'='1')
load '/tmp/nothing-here' with ('async'='perhaps')
