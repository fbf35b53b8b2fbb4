-- SELECT: paths, wildcards, conditions, order, limits, devices, last values.
create database root.fab
insert into root.fab.a.d1(time,x,y) values (1,1,10.5),(2,2,20.5),(3,3,30.5),(4,4,null),(5,null,50.5)
insert into root.fab.a.d2(time,x,y,z) values (1,-1,1.0,'p'),(3,-3,3.0,'q'),(6,-6,null,'r')
insert into root.fab.b.d1(time,x) values (2,200),(4,400)
insert into root.fab.b.d3 aligned (time,u,v) values (1,true,'on'),(2,false,null),(3,null,'off')
select x from root.fab.a.d1
select x,y from root.fab.a.d1
select y,x from root.fab.a.d1
select x,x from root.fab.a.d1
select x as first from root.fab.a.d1
select x as first, y as second from root.fab.a.d1
select x as `odd name` from root.fab.a.d1
select x from root.fab.a.d1, root.fab.a.d2
select x from root.fab.a.*
select * from root.fab.a.*
select * from root.fab.*.d1
select ** from root.fab
select ** from root.fab.b
select * from root.fab
select *.x from root.fab.a
select d1.x, d2.z from root.fab.a
select a.d1.x from root.fab
select x from root.fab.**
select x from root.fab.*.d*
select u,v from root.fab.b.d3
select nothing from root.fab.a.d1
select x from root.nowhere
select x from root.nowhere.d
select nothing, x from root.fab.a.d1
select x from root.fab.a.d1 where time > 2
select x from root.fab.a.d1 where time >= 2 and time <= 4
select x from root.fab.a.d1 where time = 3
select x from root.fab.a.d1 where time != 3
select x from root.fab.a.d1 where time in (1, 3, 9)
select x from root.fab.a.d1 where time not in (1, 3)
select x from root.fab.a.d1 where time between 2 and 3
select x from root.fab.a.d1 where time > 100
select x from root.fab.a.d1 where time > 3 and time < 2
select x from root.fab.a.d1 where time < 2 or time > 3
select x from root.fab.a.d1 where not (time < 3)
select x from root.fab.a.d1 where x > 1 and y < 30
select x,y from root.fab.a.d1 where x > 1 or y > 50
select x,y from root.fab.a.d1 where y is null
select x,y from root.fab.a.d1 where x is not null and y is not null
select x from root.fab.a.d1 where y > 15
select x from root.fab.a.d1 where x = 1 or x = 3
select x from root.fab.a.d1 where x + y > 22
select x from root.fab.a.d1 where x * 2 = 4
select x from root.fab.a.d1 where x
select x from root.fab.a.d1 where z = 'p'
select z from root.fab.a.d2 where z = 'p' or z = 'r'
select u from root.fab.b.d3 where u
select u,v from root.fab.b.d3 where v = 'on'
select x from root.fab.a.* where x > 0
select * from root.fab.a.* where x > 0
select x from root.fab.a.d1 order by time
select x from root.fab.a.d1 order by time desc
select x from root.fab.a.d1 order by time asc
select x,y from root.fab.a.d1 order by time desc limit 2
select x from root.fab.a.d1 limit 2
select x from root.fab.a.d1 limit 2 offset 1
select x from root.fab.a.d1 offset 3
select x from root.fab.a.d1 limit 0
select x from root.fab.a.d1 limit 2 offset 10
select x from root.fab.a.d1 limit -1
select * from root.fab.a.* slimit 2
select x,y from root.fab.a.d1 slimit 1
select x,y from root.fab.a.d1 slimit 1 soffset 1
select x,y from root.fab.a.d1 slimit 0
select x from root.fab.a.d1 where time > 1 order by time desc limit 1 offset 1
select x from root.fab.a.* align by device
select * from root.fab.a.* align by device
select * from root.fab.** align by device
select x,y from root.fab.a.d1 align by device
select x as n from root.fab.a.* align by device
select z from root.fab.a.* align by device
select nothing from root.fab.a.* align by device
select x,nothing from root.fab.a.* align by device
select x from root.fab.a.* where x > 0 align by device
select x from root.fab.a.* where z = 'p' align by device
select x from root.fab.a.* order by time align by device
select x from root.fab.a.* order by time desc, device align by device
select x from root.fab.a.* order by device desc align by device
select x from root.fab.a.* order by device desc, time desc align by device
select x from root.fab.a.* order by x align by device
select x,y from root.fab.a.* order by x desc, time align by device
select x,y from root.fab.a.* order by y nulls first align by device
select x,y from root.fab.a.* order by y nulls last, time align by device
select x from root.fab.a.* order by x + 1 align by device
select x from root.fab.a.* order by x limit 2 align by device
select x from root.fab.a.* limit 2 align by device
select x from root.fab.a.* limit 2 offset 4 align by device
select x + 1, -x from root.fab.a.* align by device
select x + y from root.fab.a.d1
select x + nothing from root.fab.a.d1
select x + 1 as s from root.fab.a.d1
select x, x + 1, x * 2 from root.fab.a.d1
select (x + 1) * 2 from root.fab.a.d1
select x + 1 * 2 from root.fab.a.d1
select -x + 1 from root.fab.a.d1
select x > 2 from root.fab.a.d1
select x > 2 and y > 10 from root.fab.a.d1
select x > 2 or y > 10 from root.fab.a.d1
select not (x > 2) from root.fab.a.d1
select x in (1, 2) from root.fab.a.d1
select x between 2 and 3 from root.fab.a.d1
select x is null from root.fab.a.d1
select x is not null from root.fab.a.d1
select z like 'p%' from root.fab.a.d2
select z regexp 'p.*' from root.fab.a.d2
select z = 'p' from root.fab.a.d2
select z in ('p', 'q') from root.fab.a.d2
select 1 from root.fab.a.d1
select x, 1 from root.fab.a.d1
select 1 + 1 from root.fab.a.d1
select 'text' from root.fab.a.d1
select * + 1 from root.fab.a.d1
select * + * from root.fab.b.d1
select x + x from root.fab.a.*
select case when x > 2 then 'big' else 'small' end from root.fab.a.d1
select case when x > 2 then 1 end from root.fab.a.d1
select case when x > 2 then 1.5 else 0.5 end as k from root.fab.a.d1
select case x when 1 then 'one' when 2 then 'two' else 'many' end from root.fab.a.d1
select case when x > 2 then y else -y end from root.fab.a.d1
select case when x > 2 then 'big' else 1 end from root.fab.a.d1
select case when x then 1 end from root.fab.a.d1
select case when x > 1 and y > 25 then true else false end from root.fab.a.d1
select last x from root.fab.a.d1
select last x,y from root.fab.a.d1
select last * from root.fab.a.*
select last x from root.fab.**
select last nothing from root.fab.a.d1
select last x from root.fab.a.d1 where time > 2
select last x from root.fab.a.d1 where time > 100
select last x from root.fab.a.d1 where time < 3
select last x from root.fab.a.d1 where x > 2
select last x from root.fab.a.* order by timeseries
select last x from root.fab.a.* order by timeseries desc
select last x from root.fab.a.* order by time desc
select last x as n from root.fab.a.d1
select last x + 1 from root.fab.a.d1
select last x,y from root.fab.a.d1 limit 1
select last u,v from root.fab.b.d3
select last * from root.fab.a.* align by device
select x from root.fab.a.d1 where time > '2024'
select x from root.fab.a.d1 where time > 2024-01-01
select x from root.fab.a.d1 where time > 1970-01-01T00:00:00.003
select x from root.fab.a.d1 where time < 1970-01-01T00:00:00.003+00:00
select x from root.fab.a.d1 where time > now()
select x from root.fab.a.d1 where time < now() - 1d
select s from root.fab.a.d1 align by time
select x from root.fab.a.d1 align by time
select x y from root.fab.a.d1
select from root.fab.a.d1
select x from
select x from fab.a.d1
select x from root
select root.fab.a.d1.x from root
select x where time > 1
select x from root.fab.a.d1 where
select x from root.fab.a.d1 order by
select x from root.fab.a.d1 order by nothing
select x from root.fab.a.d1 limit
select x,, y from root.fab.a.d1
select (x from root.fab.a.d1
selec x from root.fab.a.d1
select x from root.fab.a.d1 group by
select x as a, y as a from root.fab.a.d1
select * as a from root.fab.a.d1
select * as a from root.fab.b.d1
explain select nothing from root.fab.a.d1
