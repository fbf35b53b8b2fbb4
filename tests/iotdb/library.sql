-- Functions of IoTDB's library, registered and dropped again; MASTER_REPAIR.
create function spread as 'org.apache.iotdb.library.dprofile.UDAFSpread'
create function mad as 'org.apache.iotdb.library.dprofile.UDAFMad'
create function median as 'org.apache.iotdb.library.dprofile.UDAFMedian'
create function skew as 'org.apache.iotdb.library.dprofile.UDAFSkew'
create function quantile as 'org.apache.iotdb.library.dprofile.UDAFQuantile'
create function integral as 'org.apache.iotdb.library.dprofile.UDAFIntegral'
create function integralavg as 'org.apache.iotdb.library.dprofile.UDAFIntegralAvg'
create function period as 'org.apache.iotdb.library.dprofile.UDAFPeriod'
create function distinct as 'org.apache.iotdb.library.dprofile.UDTFDistinct'
create function histogram as 'org.apache.iotdb.library.dprofile.UDTFHistogram'
create function minmax as 'org.apache.iotdb.library.dprofile.UDTFMinMax'
create function mvavg as 'org.apache.iotdb.library.dprofile.UDTFMvAvg'
create function sample as 'org.apache.iotdb.library.dprofile.UDTFSample'
create function segment as 'org.apache.iotdb.library.dprofile.UDTFSegment'
create function spline as 'org.apache.iotdb.library.dprofile.UDTFSpline'
create function cov as 'org.apache.iotdb.library.dmatch.UDAFCov'
create function pearson as 'org.apache.iotdb.library.dmatch.UDAFPearson'
create function dtw as 'org.apache.iotdb.library.dmatch.UDAFDtw'
create function ptnsym as 'org.apache.iotdb.library.dmatch.UDTFPtnSym'
create function xcorr as 'org.apache.iotdb.library.dmatch.UDTFXCorr'
create function iqr as 'org.apache.iotdb.library.anomaly.UDTFIQR'
create function ksigma as 'org.apache.iotdb.library.anomaly.UDTFKSigma'
create function range as 'org.apache.iotdb.library.anomaly.UDTFRange'
create function outlier as 'org.apache.iotdb.library.anomaly.UDTFOutlier'
create function twosidedfilter as 'org.apache.iotdb.library.anomaly.UDTFTwoSidedFilter'
create function valuerepair as 'org.apache.iotdb.library.drepair.UDTFValueRepair'
create function conv as 'org.apache.iotdb.library.frequency.UDTFConv'
create function deconv as 'org.apache.iotdb.library.frequency.UDTFDeconv'
create function fft as 'org.apache.iotdb.library.frequency.UDTFFFT'
create function highpass as 'org.apache.iotdb.library.frequency.UDTFHighPass'
create function lowpass as 'org.apache.iotdb.library.frequency.UDTFLowPass'
create function dwt as 'org.apache.iotdb.library.frequency.UDTFDWT'
create function ar as 'org.apache.iotdb.library.dlearn.UDTFAR'
create function lof as 'org.apache.iotdb.library.anomaly.UDTFLOF'
create function acf as 'org.apache.iotdb.library.dprofile.UDTFACF'
create function percentile as 'org.apache.iotdb.library.dprofile.UDAFPercentile'
create function resample as 'org.apache.iotdb.library.dprofile.UDTFResample'
create function timestamprepair as 'org.apache.iotdb.library.drepair.UDTFTimestampRepair'
create function valuefill as 'org.apache.iotdb.library.drepair.UDTFValueFill'
create function consecutivewindows as 'org.apache.iotdb.library.series.UDTFConsecutiveWindows'
create function consecutivesequences as 'org.apache.iotdb.library.series.UDTFConsecutiveSequences'
create function regexmatch as 'org.apache.iotdb.library.string.UDTFRegexMatch'
create function regexsplit as 'org.apache.iotdb.library.string.UDTFRegexSplit'
create function regexreplace as 'org.apache.iotdb.library.string.UDTFRegexReplace'
create function strreplace as 'org.apache.iotdb.library.string.UDTFStrReplace'
create function zscore as 'org.apache.iotdb.library.dprofile.UDTFZScore'
create function missdetect as 'org.apache.iotdb.library.anomaly.UDTFMissDetect'
create function completeness as 'org.apache.iotdb.library.dquality.UDTFCompleteness'
create function timeliness as 'org.apache.iotdb.library.dquality.UDTFTimeliness'
create function consistency as 'org.apache.iotdb.library.dquality.UDTFConsistency'
create function validity as 'org.apache.iotdb.library.dquality.UDTFValidity'
create function pacf as 'org.apache.iotdb.library.dprofile.UDTFPACF'
create database root.lib
insert into root.lib.d(time,v,w,t) values (1000,1.0,2.0,'a1b2'),(2000,1.2,2.5,'xyz'),(3000,1.1,1.5,'c3'),(4000,9.0,2.2,''),(5000,1.3,2.1,'10-20-30'),(6000,0.9,2.4,'no'),(7000,1.2,1.9,'ab12cd34')
insert into root.lib.d(time,v) values (9000,1.15),(10000,1.05),(11000,1.25),(13000,1.0)
insert into root.lib.n(time,v) values (1000,1),(2000,NaN),(3000,3),(4000,4),(5000,NaN),(6000,NaN),(7000,7),(8000,8)
select lof(v) from root.lib.d
select lof(v,'k'='3') from root.lib.d
select lof(v,w,'k'='2') from root.lib.d
select lof(v,'method'='series','k'='2') from root.lib.d
select lof(v,'method'='series','k'='3','window'='3') from root.lib.d
select acf(v) from root.lib.d
select pacf(v) from root.lib.d
select percentile(v,'rank'='0.5') from root.lib.d
select resample(v,'every'='1500ms','interp'='linear') from root.lib.d
select resample(v,'every'='3s') from root.lib.d
select resample(v,'every'='500ms') from root.lib.d
select resample(v,'every'='500ms','interp'='ffill') from root.lib.d
select resample(v,'every'='500ms','interp'='bfill') from root.lib.d
select resample(v,'every'='2s','aggr'='max') from root.lib.d
select resample(v,'every'='2s','aggr'='first','start'='1970-01-01 00:00:02','end'='1970-01-01 00:00:09') from root.lib.d
select timestamprepair(v) from root.lib.d
select timestamprepair(v,'interval'='1000') from root.lib.d
select timestamprepair(v,'method'='median') from root.lib.d
select valuefill(v,'method'='likelihood') from root.lib.n
select valuefill(v) from root.lib.n
select valuefill(v,'method'='previous') from root.lib.n
select valuefill(v,'method'='linear') from root.lib.n
select valuefill(v,'method'='screen') from root.lib.n
select consecutivewindows(v,'length'='3s') from root.lib.d
select consecutivewindows(v,'gap'='1s','length'='2s') from root.lib.d
select consecutivesequences(v) from root.lib.d
select consecutivesequences(v,'gap'='1s') from root.lib.d
select regexmatch(t,'regex'='[0-9]+') from root.lib.d
select regexmatch(t,'regex'='([a-z])([0-9])','group'='2') from root.lib.d
select regexsplit(t,'regex'='-','index'='1') from root.lib.d
select regexsplit(t,'regex'='-') from root.lib.d
select regexreplace(t,'regex'='[0-9]+','replace'='#') from root.lib.d
select strreplace(t,'target'='1','replace'='one') from root.lib.d
select zscore(v) from root.lib.d
select zscore(v,'compute'='stream','avg'='1','std'='0.5') from root.lib.d
select missdetect(v) from root.lib.d
select missdetect(v,'minlen'='10') from root.lib.d
select completeness(v) from root.lib.d
select timeliness(v) from root.lib.d
select consistency(v) from root.lib.d
select validity(v) from root.lib.d
select completeness(v,'window'='5') from root.lib.d
insert into root.lib.g(time,x,y) values (1,1,2),(2,3,1),(3,2,4),(4,5,3),(5,4,5),(6,8,6)
create timeseries root.lib.k.i INT32 encoding=PLAIN
insert into root.lib.k(time,i) values (0,1),(10,2),(20,3),(41,4),(50,5)
select master_repair(v,w,v,w) from root.lib.d
insert into root.lib.m(time,a,b,ma,mb) values (1,1.5,2.5,1,2),(2,2.25,3.5,2,3),(3,9,4.5,3,4),(4,4.5,5,4,5),(5,5.5,6.5,5,6),(6,6.5,7,6,7),(7,1,8.5,7,8),(8,8.25,9,8,9)
insert into root.lib.m(time,a) values (9,9.5)
insert into root.lib.m(time,ma,mb) values (10,9,10)
select master_repair(a,b,ma,mb) from root.lib.m
select master_repair(a,b,ma,mb,'output_column'='2') from root.lib.m
select master_repair(a,b,ma,mb,'omega'='2','eta'='1.0','k'='3') from root.lib.m
select master_repair(a,b,ma,mb,'omega'='3','eta'='0.8','k'='2') from root.lib.m
select master_repair(a,ma) from root.lib.m
select master_repair(a,b,ma) from root.lib.m
select master_repair(a,ma,'k'='0') from root.lib.m
select master_repair(a,ma,'eta'='-1') from root.lib.m
select master_repair(a,ma,'omega'='-5') from root.lib.m
select master_repair(a,ma,'output_column'='2') from root.lib.m
create timeseries root.lib.z.t1 DOUBLE encoding=PLAIN
insert into root.lib.z(time,t1,t2,t3,m1,m2,m3) values (1000,1704,1154.55,0.195,1704,1154.55,0.195),(2000,1702,1152.30,0.193,1702,1152.30,0.193),(3000,1702,1148.65,0.192,1702,1148.65,0.192),(4000,1701,1145.20,0.194,1701,1145.20,0.194),(7000,1703,1150.55,0.195,1703,1150.55,0.195),(8000,1694,1151.55,0.193,1704,1151.55,0.193),(9000,1705,1153.55,0.194,1702,1153.05,0.194),(10000,1706,1152.30,0.190,1704,1153.20,0.190)
select master_repair(t1,t2,t3,m1,m2,m3) from root.lib.z
select master_repair(t1,t2,t3,m1,m2,m3,'output_column'='2') from root.lib.z
select resample(v,'every'='3s','end'='1970-01-01 00:00:09') from root.lib.d
select resample(v,'every'='1500ms') from root.lib.d
select resample(v,'every'='1500ms','interp'='ffill') from root.lib.d
select resample(v,'every'='1500ms','interp'='bfill') from root.lib.d
select resample(v,'every'='1500ms','aggr'='max') from root.lib.d
select resample(v,'every'='1500ms','aggr'='last','interp'='linear') from root.lib.d
select resample(v,'every'='2s','start'='1970-01-01 00:00:02') from root.lib.d
select resample(v,'every'='2s','end'='1970-01-01 00:00:06') from root.lib.d
select timestamprepair(i) from root.lib.k
select spread(x) from root.lib.g
select mad(x) from root.lib.g
select median(x) from root.lib.g
select skew(x) from root.lib.g
select quantile(x) from root.lib.g
select integral(x) from root.lib.g
select integralavg(x) from root.lib.g
select period(x) from root.lib.g
select distinct(x) from root.lib.g
select minmax(x) from root.lib.g
select segment(x) from root.lib.g
select histogram(x,'min'='0','max'='9','count'='3') from root.lib.g
select mvavg(x,'window'='2') from root.lib.g
select sample(x,'method'='isometric','k'='2') from root.lib.g
select spline(x,'points'='4') from root.lib.g
select cov(x,y) from root.lib.g
select pearson(x,y) from root.lib.g
select dtw(x,y) from root.lib.g
select conv(x,y) from root.lib.g
select deconv(x,y) from root.lib.g
select ptnsym(x,'window'='3') from root.lib.g
select iqr(x) from root.lib.g
select ksigma(x,'k'='1') from root.lib.g
select range(x,'lower_bound'='2','upper_bound'='4') from root.lib.g
select outlier(x,'r'='1','k'='1','w'='3','s'='3') from root.lib.g
select twosidedfilter(x,'len'='2','threshold'='0.3') from root.lib.g
select valuerepair(x) from root.lib.g
select valuerepair(x,'method'='LsGreedy') from root.lib.g
select fft(x) from root.lib.g
select fft(x,'result'='abs') from root.lib.g
select highpass(x,'wpass'='0.5') from root.lib.g
select lowpass(x,'wpass'='0.5') from root.lib.g
select dwt(x,'method'='haar') from root.lib.g
select ar(x,'p'='2') from root.lib.g
select spread(t) from root.lib.d
select mad(x,'error'='0.01') from root.lib.g
select spread(x), median(x) from root.lib.g
drop function lof
drop function acf
drop function percentile
drop function resample
drop function timestamprepair
drop function valuefill
drop function consecutivewindows
drop function consecutivesequences
drop function regexmatch
drop function regexsplit
drop function regexreplace
drop function strreplace
drop function zscore
drop function missdetect
drop function completeness
drop function timeliness
drop function consistency
drop function validity
drop function pacf
drop function spread
drop function mad
drop function median
drop function skew
drop function quantile
drop function integral
drop function integralavg
drop function period
drop function distinct
drop function histogram
drop function minmax
drop function mvavg
drop function sample
drop function segment
drop function spline
drop function cov
drop function pearson
drop function dtw
drop function ptnsym
drop function xcorr
drop function iqr
drop function ksigma
drop function range
drop function outlier
drop function twosidedfilter
drop function valuerepair
drop function conv
drop function deconv
drop function fft
drop function highpass
drop function lowpass
drop function dwt
drop function ar
drop function sin
drop function nothing_here
