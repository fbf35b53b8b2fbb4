-- Operators over each pair of types, constants, and nulls.
create database root.ops
create timeseries root.ops.d.b BOOLEAN encoding=PLAIN
create timeseries root.ops.d.i INT32 encoding=PLAIN
create timeseries root.ops.d.l INT64 encoding=PLAIN
create timeseries root.ops.d.f FLOAT encoding=PLAIN
create timeseries root.ops.d.d DOUBLE encoding=PLAIN
create timeseries root.ops.d.t TEXT encoding=PLAIN
create timeseries root.ops.d.s STRING encoding=PLAIN
create timeseries root.ops.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.ops.d.da DATE encoding=PLAIN
create timeseries root.ops.d.bl BLOB encoding=PLAIN
insert into root.ops.d(time,b,i,l,f,d,t,s,ts,da,bl) values (1,true,1,10,1.5,2.25,'one','uno',1000,'2024-01-02',X'01')
insert into root.ops.d(time,b,i,l,f,d,t,s,ts,da,bl) values (2,false,-2,-20,-0.5,-0.5,'two','one',-1000,'1999-12-31',X'0a41')
insert into root.ops.d(time,i) values (3,5)
insert into root.ops.d(time,t) values (4,'only')
select b + b from root.ops.d
select b + i from root.ops.d
select b + l from root.ops.d
select b + f from root.ops.d
select b + d from root.ops.d
select b + t from root.ops.d
select b + s from root.ops.d
select b + ts from root.ops.d
select b + da from root.ops.d
select b + bl from root.ops.d
select i + b from root.ops.d
select i + i from root.ops.d
select i + l from root.ops.d
select i + f from root.ops.d
select i + d from root.ops.d
select i + t from root.ops.d
select i + s from root.ops.d
select i + ts from root.ops.d
select i + da from root.ops.d
select i + bl from root.ops.d
select l + b from root.ops.d
select l + i from root.ops.d
select l + l from root.ops.d
select l + f from root.ops.d
select l + d from root.ops.d
select l + t from root.ops.d
select l + s from root.ops.d
select l + ts from root.ops.d
select l + da from root.ops.d
select l + bl from root.ops.d
select f + b from root.ops.d
select f + i from root.ops.d
select f + l from root.ops.d
select f + f from root.ops.d
select f + d from root.ops.d
select f + t from root.ops.d
select f + s from root.ops.d
select f + ts from root.ops.d
select f + da from root.ops.d
select f + bl from root.ops.d
select d + b from root.ops.d
select d + i from root.ops.d
select d + l from root.ops.d
select d + f from root.ops.d
select d + d from root.ops.d
select d + t from root.ops.d
select d + s from root.ops.d
select d + ts from root.ops.d
select d + da from root.ops.d
select d + bl from root.ops.d
select t + b from root.ops.d
select t + i from root.ops.d
select t + l from root.ops.d
select t + f from root.ops.d
select t + d from root.ops.d
select t + t from root.ops.d
select t + s from root.ops.d
select t + ts from root.ops.d
select t + da from root.ops.d
select t + bl from root.ops.d
select s + b from root.ops.d
select s + i from root.ops.d
select s + l from root.ops.d
select s + f from root.ops.d
select s + d from root.ops.d
select s + t from root.ops.d
select s + s from root.ops.d
select s + ts from root.ops.d
select s + da from root.ops.d
select s + bl from root.ops.d
select ts + b from root.ops.d
select ts + i from root.ops.d
select ts + l from root.ops.d
select ts + f from root.ops.d
select ts + d from root.ops.d
select ts + t from root.ops.d
select ts + s from root.ops.d
select ts + ts from root.ops.d
select ts + da from root.ops.d
select ts + bl from root.ops.d
select da + b from root.ops.d
select da + i from root.ops.d
select da + l from root.ops.d
select da + f from root.ops.d
select da + d from root.ops.d
select da + t from root.ops.d
select da + s from root.ops.d
select da + ts from root.ops.d
select da + da from root.ops.d
select da + bl from root.ops.d
select bl + b from root.ops.d
select bl + i from root.ops.d
select bl + l from root.ops.d
select bl + f from root.ops.d
select bl + d from root.ops.d
select bl + t from root.ops.d
select bl + s from root.ops.d
select bl + ts from root.ops.d
select bl + da from root.ops.d
select bl + bl from root.ops.d
select b < b from root.ops.d
select b < i from root.ops.d
select b < l from root.ops.d
select b < f from root.ops.d
select b < d from root.ops.d
select b < t from root.ops.d
select b < s from root.ops.d
select b < ts from root.ops.d
select b < da from root.ops.d
select b < bl from root.ops.d
select i < i from root.ops.d
select i < l from root.ops.d
select i < t from root.ops.d
select i < s from root.ops.d
select i < ts from root.ops.d
select l < l from root.ops.d
select l < t from root.ops.d
select l < s from root.ops.d
select l < ts from root.ops.d
select f < i from root.ops.d
select f < l from root.ops.d
select f < f from root.ops.d
select f < t from root.ops.d
select f < s from root.ops.d
select f < ts from root.ops.d
select d < i from root.ops.d
select d < l from root.ops.d
select d < f from root.ops.d
select d < d from root.ops.d
select d < t from root.ops.d
select d < s from root.ops.d
select d < ts from root.ops.d
select d < da from root.ops.d
select t < t from root.ops.d
select t < ts from root.ops.d
select s < t from root.ops.d
select s < s from root.ops.d
select s < ts from root.ops.d
select ts < ts from root.ops.d
select da < i from root.ops.d
select da < l from root.ops.d
select da < f from root.ops.d
select da < t from root.ops.d
select da < s from root.ops.d
select da < ts from root.ops.d
select da < da from root.ops.d
select bl < i from root.ops.d
select bl < l from root.ops.d
select bl < f from root.ops.d
select bl < d from root.ops.d
select bl < t from root.ops.d
select bl < s from root.ops.d
select bl < ts from root.ops.d
select bl < da from root.ops.d
select bl < bl from root.ops.d
select b = b from root.ops.d
select i = i from root.ops.d
select l = l from root.ops.d
select f = f from root.ops.d
select d = d from root.ops.d
select t = t from root.ops.d
select s = s from root.ops.d
select ts = ts from root.ops.d
select da = da from root.ops.d
select bl = bl from root.ops.d
select b = true from root.ops.d
select i from root.ops.d where b = true
select b = 1 from root.ops.d
select i from root.ops.d where b = 1
select b = 'true' from root.ops.d
select i from root.ops.d where b = 'true'
select i = 1 from root.ops.d
select i from root.ops.d where i = 1
select i = 1.0 from root.ops.d
select i from root.ops.d where i = 1.0
select i = '1' from root.ops.d
select i from root.ops.d where i = '1'
select i = true from root.ops.d
select i from root.ops.d where i = true
select l = 10 from root.ops.d
select i from root.ops.d where l = 10
select l = 1e1 from root.ops.d
select i from root.ops.d where l = 1e1
select f = 1.5 from root.ops.d
select i from root.ops.d where f = 1.5
select f = 2 from root.ops.d
select i from root.ops.d where f = 2
select d = 2.25 from root.ops.d
select i from root.ops.d where d = 2.25
select d = 'x' from root.ops.d
select i from root.ops.d where d = 'x'
select t = 'one' from root.ops.d
select i from root.ops.d where t = 'one'
select t = 1 from root.ops.d
select i from root.ops.d where t = 1
select s = 'uno' from root.ops.d
select i from root.ops.d where s = 'uno'
select s = true from root.ops.d
select i from root.ops.d where s = true
select ts = 1000 from root.ops.d
select i from root.ops.d where ts = 1000
select ts = 1.5 from root.ops.d
select i from root.ops.d where ts = 1.5
select ts = 'x' from root.ops.d
select i from root.ops.d where ts = 'x'
select da = 20240102 from root.ops.d
select i from root.ops.d where da = 20240102
select da = 1.5 from root.ops.d
select i from root.ops.d where da = 1.5
select bl = 1 from root.ops.d
select i from root.ops.d where bl = 1
select i - d from root.ops.d
select l - d from root.ops.d
select f - d from root.ops.d
select d - d from root.ops.d
select i * d from root.ops.d
select l * d from root.ops.d
select f * d from root.ops.d
select d * d from root.ops.d
select i / d from root.ops.d
select l / d from root.ops.d
select f / d from root.ops.d
select d / d from root.ops.d
select i % d from root.ops.d
select l % d from root.ops.d
select f % d from root.ops.d
select d % d from root.ops.d
select -b from root.ops.d
select !b from root.ops.d
select b is null from root.ops.d
select i from root.ops.d where b is null
select i from root.ops.d where b is not null
select b and b from root.ops.d
select -i from root.ops.d
select !i from root.ops.d
select i is null from root.ops.d
select i from root.ops.d where i is null
select i from root.ops.d where i is not null
select i and b from root.ops.d
select -l from root.ops.d
select !l from root.ops.d
select l is null from root.ops.d
select i from root.ops.d where l is null
select i from root.ops.d where l is not null
select l and b from root.ops.d
select -f from root.ops.d
select !f from root.ops.d
select f is null from root.ops.d
select i from root.ops.d where f is null
select i from root.ops.d where f is not null
select f and b from root.ops.d
select -d from root.ops.d
select !d from root.ops.d
select d is null from root.ops.d
select i from root.ops.d where d is null
select i from root.ops.d where d is not null
select d and b from root.ops.d
select -t from root.ops.d
select !t from root.ops.d
select t is null from root.ops.d
select i from root.ops.d where t is null
select i from root.ops.d where t is not null
select t and b from root.ops.d
select -s from root.ops.d
select !s from root.ops.d
select s is null from root.ops.d
select i from root.ops.d where s is null
select i from root.ops.d where s is not null
select s and b from root.ops.d
select -ts from root.ops.d
select !ts from root.ops.d
select ts is null from root.ops.d
select i from root.ops.d where ts is null
select i from root.ops.d where ts is not null
select ts and b from root.ops.d
select -da from root.ops.d
select !da from root.ops.d
select da is null from root.ops.d
select i from root.ops.d where da is null
select i from root.ops.d where da is not null
select da and b from root.ops.d
select -bl from root.ops.d
select !bl from root.ops.d
select bl is null from root.ops.d
select i from root.ops.d where bl is null
select i from root.ops.d where bl is not null
select bl and b from root.ops.d
select i + time from root.ops.d
select time < ts from root.ops.d
select ts >= time from root.ops.d
select ts = l from root.ops.d
select ts = i from root.ops.d
select ts between 1 and 5 from root.ops.d
select ts in (1, 2) from root.ops.d
select max_by(ts, i) + 1 from root.ops.d
select max_by(time, i) + 1 from root.ops.d
select max_value(ts) + 1 from root.ops.d
select max_time(ts) + 1 from root.ops.d
select i from root.ops.d where ts > 1970-01-01
select i from root.ops.d where ts > i
select ts % 2 from root.ops.d
select ts / 2 from root.ops.d
select i + 1970-01-02 from root.ops.d
