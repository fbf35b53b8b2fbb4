-- PATTERN_MATCH and DTW_MATCH of IoTDB's library.
create function dtw_match as 'org.apache.iotdb.library.match.UDAFDTWMatch'
create function pattern_match as 'org.apache.iotdb.library.match.UDAFPatternMatch'
create database root.pat
insert into root.pat.d(time,x,i,t) values (1,0,0,'a'),(2,2,2,'b'),(3,4,4,'c'),(4,2,2,'d'),(5,0,0,'e'),(6,1,1,'f'),(7,2.5,2,'g'),(8,5,5,'h'),(9,2,2,'i'),(10,0,0,'j'),(11,0,0,'k'),(12,3,3,'l'),(13,8,8,'m'),(14,4,4,'n'),(15,1,1,'o')
create timeseries root.pat.e.b BOOLEAN
create timeseries root.pat.e.f FLOAT
create timeseries root.pat.e.l INT64
insert into root.pat.e(time,b,f,l) values (1000,false,0.1,1),(2000,true,0.7,5),(3000,true,0.3,1),(4500,false,0.9,5),(5000,true,0.1,2),(9000,true,0.2,1)
select dtw_match(x,'pattern'='0,2,4,2','threshold'='1.5') from root.pat.d
select dtw_match(x,'pattern'='0,2,4,2','threshold'='0') from root.pat.d
select dtw_match(x,'pattern'='0,2,4,2','threshold'='100') from root.pat.d
select dtw_match(i,'pattern'='0,2,5','threshold'='1') from root.pat.d
select dtw_match(b,'pattern'='0,1,1','threshold'='0') from root.pat.e
select dtw_match(f,'pattern'='0.1,0.7,0.3','threshold'='0.5') from root.pat.e
select dtw_match(l,'pattern'='1.5,4.25','threshold'='1') from root.pat.e
select dtw_match(x,'pattern'='100,200','threshold'='1') from root.pat.d
select dtw_match(x,'pattern'='1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16','threshold'='1000') from root.pat.d
select dtw_match(x,'pattern'='0,4','threshold'='1') as m, count(x) from root.pat.d
select dtw_match(x,'pattern'='0,4','threshold'='1') from root.pat.d where time > 5
select dtw_match(x,'pattern'='0,4','threshold'='1') from root.pat.d where time > 100
select dtw_match(x,'pattern'='0,4,2','threshold'='2') from root.pat.d group by ([1,16),5ms)
select dtw_match(x,'pattern'='0,4,2','threshold'='2') from root.pat.d align by device
select dtw_match(x,'pattern'='5','threshold'='1') from root.pat.d
select dtw_match(x,'pattern'='0,2') from root.pat.d
select dtw_match(x,'threshold'='2') from root.pat.d
select dtw_match(x,'pattern'='0,y','threshold'='2') from root.pat.d
select dtw_match(t,'pattern'='0,2','threshold'='2') from root.pat.d
select dtw_match(x,i,'pattern'='0,2','threshold'='2') from root.pat.d
select pattern_match(x,'timePattern'='1,2,3,4,5','valuePattern'='0,2,4,2,0','threshold'='5') from root.pat.d
select pattern_match(x,'timePattern'='1,2,3,4,5','valuePattern'='0,200,500,200,0','threshold'='1') from root.pat.d
select pattern_match(i,'timePattern'='1,2,3,4,5','valuePattern'='0,2,4,2,0','threshold'='50') from root.pat.d
select pattern_match(x,'timePattern'='0,1,3,5,6','valuePattern'='0,10,-10,10,0','threshold'='10') from root.pat.d
select pattern_match(f,'timePattern'='0,1,2','valuePattern'='0,1,0','threshold'='100') from root.pat.e
select pattern_match(l,'timePattern'='0,1,2,3','valuePattern'='0,1,0,1','threshold'='100') from root.pat.e
select pattern_match(b,'timePattern'='0,1,2','valuePattern'='0,1,0','threshold'='100') from root.pat.e
select pattern_match(x,'timePattern'='0,10','valuePattern'='0,300','threshold'='2') from root.pat.d
select pattern_match(x,'timePattern'='0,1','valuePattern'='3,3','threshold'='1') from root.pat.d
select pattern_match(x,'timePattern'='0,1,2','valuePattern'='0,5,0','threshold'='0') from root.pat.d
select pattern_match(x,'timePattern'='0,1,2','valuePattern'='0,5,0','threshold'='100') from root.pat.d group by ([1,16),5ms)
select pattern_match(x,'timePattern'='2,1','valuePattern'='0,5','threshold'='0') from root.pat.d
select pattern_match(x,'timePattern'='1','valuePattern'='5','threshold'='0') from root.pat.d
select pattern_match(x,'timePattern'='1,2','valuePattern'='0,5,7','threshold'='0') from root.pat.d
select pattern_match(x,'valuePattern'='0,5,7','threshold'='0') from root.pat.d
select pattern_match(x,'timePattern'='1,2','threshold'='0') from root.pat.d
select pattern_match(x,'timePattern'='1,2','valuePattern'='0,5') from root.pat.d
select pattern_match(t,'timePattern'='1,2','valuePattern'='0,5','threshold'='0') from root.pat.d
drop function dtw_match
drop function pattern_match
