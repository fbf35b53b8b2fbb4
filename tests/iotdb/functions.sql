-- Row functions and functions that generate points, over numbers, texts, nulls, and nothing; wrong arguments.
create database root.fun
create timeseries root.fun.d.i INT32 encoding=PLAIN
create timeseries root.fun.d.l INT64 encoding=PLAIN
create timeseries root.fun.d.f FLOAT encoding=PLAIN
create timeseries root.fun.d.d DOUBLE encoding=PLAIN
create timeseries root.fun.d.b BOOLEAN encoding=PLAIN
create timeseries root.fun.d.t TEXT encoding=PLAIN
create timeseries root.fun.d.s STRING encoding=PLAIN
create timeseries root.fun.d.empty DOUBLE encoding=PLAIN
insert into root.fun.d(time,i,l,f,d,b,t,s) values (1000,1,10,0.5,0.25,true,'apple','Red'),(2000,-4,-40,-1.5,-2.75,false,'banana','green'),(3000,9,90,2.25,3.5,true,'',' blue '),(5000,9,70,2.25,-3.5,true,'fig','x,y,z')
insert into root.fun.d(time,i,t) values (6000,0,'a-b-c')
insert into root.fun.d(time,d) values (7000,1.0)
select sin(i) from root.fun.d
select sin(f) from root.fun.d
select sin(d) from root.fun.d
select cos(i) from root.fun.d
select cos(f) from root.fun.d
select cos(d) from root.fun.d
select tan(i) from root.fun.d
select tan(f) from root.fun.d
select tan(d) from root.fun.d
select asin(i) from root.fun.d
select asin(f) from root.fun.d
select asin(d) from root.fun.d
select acos(i) from root.fun.d
select acos(f) from root.fun.d
select acos(d) from root.fun.d
select atan(i) from root.fun.d
select atan(f) from root.fun.d
select atan(d) from root.fun.d
select sinh(i) from root.fun.d
select sinh(f) from root.fun.d
select sinh(d) from root.fun.d
select cosh(i) from root.fun.d
select cosh(f) from root.fun.d
select cosh(d) from root.fun.d
select tanh(i) from root.fun.d
select tanh(f) from root.fun.d
select tanh(d) from root.fun.d
select degrees(i) from root.fun.d
select degrees(f) from root.fun.d
select degrees(d) from root.fun.d
select radians(i) from root.fun.d
select radians(f) from root.fun.d
select radians(d) from root.fun.d
select abs(i) from root.fun.d
select abs(f) from root.fun.d
select abs(d) from root.fun.d
select sign(i) from root.fun.d
select sign(f) from root.fun.d
select sign(d) from root.fun.d
select ceil(i) from root.fun.d
select ceil(f) from root.fun.d
select ceil(d) from root.fun.d
select floor(i) from root.fun.d
select floor(f) from root.fun.d
select floor(d) from root.fun.d
select round(i) from root.fun.d
select round(f) from root.fun.d
select round(d) from root.fun.d
select exp(i) from root.fun.d
select exp(f) from root.fun.d
select exp(d) from root.fun.d
select ln(i) from root.fun.d
select ln(f) from root.fun.d
select ln(d) from root.fun.d
select log10(i) from root.fun.d
select log10(f) from root.fun.d
select log10(d) from root.fun.d
select sqrt(i) from root.fun.d
select sqrt(f) from root.fun.d
select sqrt(d) from root.fun.d
select abs(l) from root.fun.d
select sign(l) from root.fun.d
select round(l) from root.fun.d
select sqrt(l) from root.fun.d
select abs(empty) from root.fun.d
select sin(empty) from root.fun.d
select upper(empty) from root.fun.d
select length(empty) from root.fun.d
select diff(empty) from root.fun.d
select abs(t) from root.fun.d
select abs(b) from root.fun.d
select abs() from root.fun.d
select sin(t) from root.fun.d
select sin(b) from root.fun.d
select sin() from root.fun.d
select ceil(t) from root.fun.d
select ceil(b) from root.fun.d
select ceil() from root.fun.d
select sqrt(t) from root.fun.d
select sqrt(b) from root.fun.d
select sqrt() from root.fun.d
select round(d, 1) from root.fun.d
select round(f, 1) from root.fun.d
select round(i, -1) from root.fun.d
select round(d, 0) from root.fun.d
select length(t) from root.fun.d
select length(s) from root.fun.d
select length(i) from root.fun.d
select upper(t) from root.fun.d
select upper(s) from root.fun.d
select upper(i) from root.fun.d
select lower(t) from root.fun.d
select lower(s) from root.fun.d
select lower(i) from root.fun.d
select trim(t) from root.fun.d
select trim(s) from root.fun.d
select trim(i) from root.fun.d
select concat(t, s) from root.fun.d
select concat(t, '-') from root.fun.d
select concat('<', t, '>') from root.fun.d
select concat(t) from root.fun.d
select substr(t, 2) from root.fun.d
select substr(t, 1, 2) from root.fun.d
select substring(t from 2) from root.fun.d
select substring(t from 2 for 2) from root.fun.d
select substring(t, 2) from root.fun.d
select substring(t, 0, 2) from root.fun.d
select substring(t, 9) from root.fun.d
select replace(t, 'a', 'o') from root.fun.d
select replace(t, 'a', '') from root.fun.d
select replace(t, 'zz', 'o') from root.fun.d
select string_contains(t, 's'='an') from root.fun.d
select string_contains(t) from root.fun.d
select string_matches(t, 'regex'='[a-z]+') from root.fun.d
select startswith(t, 'target'='b') from root.fun.d
select endswith(t, 'target'='e') from root.fun.d
select locate(t, 'target'='a') from root.fun.d
select locate(t, 'target'='a', 'reverse'='true') from root.fun.d
select strcmp(t, s) from root.fun.d
select strcmp(t, 'fig') from root.fun.d
select in_range(i, 'lower'='0', 'upper'='5') from root.fun.d
select in_range(f, 'lower'='-2', 'upper'='0.5') from root.fun.d
select in_range(i, 'lower'='5', 'upper'='0') from root.fun.d
select in_range(t, 'lower'='0', 'upper'='5') from root.fun.d
select in_range(i) from root.fun.d
select on_off(i, 'threshold'='0') from root.fun.d
select on_off(d, 'threshold'='0.25') from root.fun.d
select on_off(i) from root.fun.d
select const(i, 'value'='7', 'type'='INT32') from root.fun.d
select const(i, 'value'='7', 'type'='INT64') from root.fun.d
select const(i, 'value'='7.5', 'type'='FLOAT') from root.fun.d
select const(i, 'value'='7.5', 'type'='DOUBLE') from root.fun.d
select const(i, 'value'='true', 'type'='BOOLEAN') from root.fun.d
select const(i, 'value'='x', 'type'='TEXT') from root.fun.d
select const(i, 'value'='x', 'type'='INT32') from root.fun.d
select const(i, 'value'='x') from root.fun.d
select pi(i) from root.fun.d
select e(i) from root.fun.d
select e(i), pi(d) from root.fun.d
select diff(i) from root.fun.d
select diff(d) from root.fun.d
select diff(i, 'ignoreNull'='false') from root.fun.d
select diff(empty, 'ignoreNull'='true') from root.fun.d
select diff(t) from root.fun.d
select difference(i) from root.fun.d
select difference(f) from root.fun.d
select difference(d) from root.fun.d
select non_negative_difference(i) from root.fun.d
select non_negative_difference(d) from root.fun.d
select derivative(i) from root.fun.d
select derivative(d) from root.fun.d
select non_negative_derivative(i) from root.fun.d
select non_negative_derivative(d) from root.fun.d
select time_difference(i) from root.fun.d
select time_difference(d) from root.fun.d
select time_difference(t) from root.fun.d
select difference(t) from root.fun.d
select derivative(b) from root.fun.d
select change_points(i) from root.fun.d
select change_points(f) from root.fun.d
select change_points(b) from root.fun.d
select change_points(t) from root.fun.d
select top_k(i, 'k'='2') from root.fun.d
select top_k(d, 'k'='3') from root.fun.d
select top_k(t, 'k'='2') from root.fun.d
select top_k(i, 'k'='100') from root.fun.d
select top_k(i, 'k'='0') from root.fun.d
select top_k(i) from root.fun.d
select bottom_k(i, 'k'='2') from root.fun.d
select bottom_k(f, 'k'='1') from root.fun.d
select bottom_k(t, 'k'='2') from root.fun.d
select top_k(i, 'k'='1'), bottom_k(i, 'k'='1') from root.fun.d
select zero_duration(i) from root.fun.d
select zero_count(i) from root.fun.d
select non_zero_duration(i) from root.fun.d
select non_zero_count(i) from root.fun.d
select zero_count(b) from root.fun.d
select non_zero_count(b) from root.fun.d
select zero_duration(b) from root.fun.d
select non_zero_duration(f) from root.fun.d
select zero_count(t) from root.fun.d
select non_zero_count(i, 'min'='2', 'max'='3') from root.fun.d
select equal_size_bucket_agg_sample(i, 'proportion'='0.5') from root.fun.d
select equal_size_bucket_agg_sample(d, 'type'='max', 'proportion'='0.5') from root.fun.d
select equal_size_bucket_agg_sample(d, 'type'='sum', 'proportion'='0.5') from root.fun.d
select equal_size_bucket_m4_sample(d, 'proportion'='1') from root.fun.d
select equal_size_bucket_outlier_sample(d, 'proportion'='0.5', 'type'='avg', 'number'='1') from root.fun.d
select equal_size_bucket_agg_sample(i, 'proportion'='2') from root.fun.d
select m4(d, 'windowSize'='2') from root.fun.d
select m4(i, 'timeInterval'='2000') from root.fun.d
select m4(i) from root.fun.d
select m4(t, 'windowSize'='2') from root.fun.d
select abs(i), sin(d) from root.fun.d
select abs(abs(i)) from root.fun.d
select sin(i + d) from root.fun.d
select abs(i) + abs(d) from root.fun.d
select upper(concat(t, s)) from root.fun.d
select length(t) > 3 from root.fun.d
select i from root.fun.d where abs(i) > 3
select i from root.fun.d where sin(i) > 0
select t from root.fun.d where length(t) > 3
select t from root.fun.d where upper(t) = 'FIG'
select t from root.fun.d where top_k(i, 'k'='1') > 0
select sum(abs(i)) from root.fun.d
select max_value(sin(d)) from root.fun.d
select count(length(t)) from root.fun.d
select abs(sum(i)) from root.fun.d
select round(avg(d), 1) from root.fun.d
select abs(i, l) from root.fun.d
select nothing(i) from root.fun.d
select abs(*) from root.fun.d
select abs(i) as a from root.fun.d
select ABS(i), Sin(i) from root.fun.d
select skewness(i), kurtosis(i) from root.fun.d
select corr(i, d), covar_pop(i, d), covar_samp(i, d) from root.fun.d
select regr_slope(i, d), regr_intercept(i, d) from root.fun.d
select count(i), count(l), count(f), count(d), count(b), count(t), count(s), count(empty) from root.fun.d
select sum(i), sum(l), sum(f), sum(d), sum(empty) from root.fun.d
select avg(i), avg(l), avg(f), avg(d), avg(empty) from root.fun.d
select min_value(i), min_value(l), min_value(f), min_value(d), min_value(empty) from root.fun.d
select max_value(i), max_value(l), max_value(f), max_value(d), max_value(empty) from root.fun.d
select extreme(i), extreme(l), extreme(f), extreme(d), extreme(empty) from root.fun.d
select first_value(i), first_value(b), first_value(t), first_value(s), first_value(empty) from root.fun.d
select last_value(i), last_value(b), last_value(t), last_value(s), last_value(empty) from root.fun.d
select mode(i), mode(b), mode(t), mode(empty) from root.fun.d
select stddev(i), stddev_pop(f), stddev_samp(d), stddev(empty) from root.fun.d
select variance(i), var_pop(f), var_samp(d), variance(empty) from root.fun.d
select min_time(i), max_time(i), min_time(empty), max_time(empty), time_duration(i), time_duration(empty) from root.fun.d
select max_by(t, i), min_by(t, i), max_by(d, l), min_by(s, d) from root.fun.d
select max_by(i, t) from root.fun.d
select max_by(i) from root.fun.d
select stddev(t) from root.fun.d
select time_duration() from root.fun.d
select count_if(i, 1) from root.fun.d
select count_if(i > 0) from root.fun.d
