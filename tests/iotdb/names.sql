-- Names of columns: texts, lists, patterns, other literals; where __endTime stands; LAST with clauses and aliases.
create database root.p
insert into root.p.d(time,t,x) values (1,'a"b',1),(2,'it''s',2),(3,'fig',3)
create timeseries root.p.d.s STRING encoding=PLAIN
create timeseries root.p.d.ts TIMESTAMP encoding=PLAIN
create timeseries root.p.d.da DATE encoding=PLAIN
create timeseries root.p.d.bl BLOB encoding=PLAIN
create timeseries root.p.d.b BOOLEAN encoding=PLAIN
insert into root.p.d(time,s,ts,da,bl,b) values (1,'1970-01-01',1000,'2024-01-02',X'3031',true),(2,'x',-1,'1999-12-31',X'ff00',false),(3,'2024-01-02',86400000,'1970-01-01',X'',true)
select t = 'it''s' from root.p.d
select t = "it's" from root.p.d
select t = 'a"b' from root.p.d
select t = "a""b" from root.p.d
select t = '' from root.p.d
select concat(t, "q") from root.p.d
select concat(t, 'a\b') from root.p.d
select t in ('it''s', "q") from root.p.d
select t in ('a b') from root.p.d
select t in ('fig', 3) from root.p.d
select x in (1, 2.50, -3) from root.p.d
select t not in ('fig') from root.p.d
select t between 'a' and 'p' from root.p.d
select t not between 'a' and 'p' from root.p.d
select t like '%i%' from root.p.d
select t not like '%i%' from root.p.d
select t like 'a\_b' from root.p.d
select t like 'a$_b' escape '$' from root.p.d
select t like 'it''s' from root.p.d
select t regexp 'it''s' from root.p.d
select t not regexp "it's" from root.p.d
select replace(t, 'a', 'b') from root.p.d
select strcmp(t, 'x') from root.p.d
select case t when 'fig' then 'f' else "g" end from root.p.d
select case when x > 2 then true else FALSE end from root.p.d
select x > 2.50 from root.p.d
select x + 1e3 from root.p.d
select x > -1.0 from root.p.d
select b = TRUE from root.p.d
select b = true and x > 1 from root.p.d
select x + 007 from root.p.d
select x * +3 from root.p.d
select x = NaN from root.p.d
select x = nan from root.p.d
select x + Infinity from root.p.d
select bl = X'3031' from root.p.d
select bl = x'ff00' from root.p.d
select da = '2024-01-02' from root.p.d
select ts > 1970-01-01 from root.p.d
select ts > 1970-01-01T00:00:00 from root.p.d
select ts = 1000 from root.p.d
select s = '1970-01-01' from root.p.d
select time > 2 from root.p.d
select x from root.p.d where time > '1970-01-01'
select count_if(t = 'fig', 1) from root.p.d
select count(t) from root.p.d having count(t) > 1
select x is null from root.p.d
select x as 'q' from root.p.d
select x as "q" from root.p.d
select string_contains(t, 's'='i') from root.p.d
select t = null from root.p.d
select concat(t, '中') from root.p.d
create timeseries root.w.d3.v DOUBLE encoding=PLAIN tags(k=a)
create database root.w
create aligned timeseries root.w.d1(v DOUBLE encoding=PLAIN, t TEXT encoding=PLAIN)
insert into root.w.d1(time,v,t) aligned values (1,1,'a'),(2,2,'b'),(6,6,'a'),(7,null,'c')
insert into root.w.d2(time,v) values (3,30),(8,80)
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endTime, sum(v) from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endTime as e from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endTime, __endTime from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endtime from root.w.d1 group by ([0, 10), 5ms)
select count(v), __ENDTIME from root.w.d1 group by ([0, 10), 5ms)
select __endTime from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endTime + 1 from root.w.d1 group by ([0, 10), 5ms)
select count(v), __endTime from root.w.d1, root.w.d2 group by ([0, 10), 5ms)
select count(v), __endTime from root.w.* group by ([0, 10), 5ms) align by device
select count(v), __endTime from root.w.* group by ([0, 10), 5ms), level=1
select count(v), __endTime from root.w.* group by ([0, 10), 5ms) having count(v) > 1
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms) order by time desc
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms) order by __endTime desc
select count(v), __endTime from root.w.* group by ([0, 10), 5ms) order by count(v) desc align by device
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms) fill(previous)
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms) slimit 1
select count(v), __endTime, sum(v) from root.w.d1 group by ([0, 10), 5ms) slimit 1 soffset 1
select count(v), __endTime from root.w.d1 group by ([0, 10), 5ms) limit 1
select count(v), __endTime from root.w.d1 group by variation(v, 2)
select count(v), __endTime from root.w.* group by session(2ms) align by device
select v, __endTime from root.w.d1
select count(v), __endTime into root.w.x(a, b) from root.w.d1 group by ([0, 10), 5ms)
select count(v) from root.w.d1 group by ([0, 10), 5ms) having __endTime > 5
select max_by(time, v), min_by(time, v) from root.w.d1
select last v, t from root.w.* order by timeseries desc
select last v from root.w.* order by value
select last v from root.w.* order by time
select last v from root.w.* limit 1
select last v from root.w.* where v > 1
select last v from root.w.* where time > 3
select last v from root.w.* where time < 0
select last v + 1 from root.w.d1
select last count(v) from root.w.d1
select last v from root.w.* align by device
select last v from root.w.* fill(previous)
select last v from root.w.* group by ([0,10),5ms)
select last v from root.w.* slimit 1
select last v from root.w.* order by dataType
select last v as `a b` from root.w.d2
select last v from root.nowhere
select last time from root.w.d1
select last v as n, t as n from root.w.d1
select v as n, t as n from root.w.d1
