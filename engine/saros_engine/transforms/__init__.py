"""Functions that take complete series and generate points at any times. `POINT_FUNCTIONS` has them by lower-case name.

selectors    TOP_K, BOTTOM_K
intervals    ZERO_DURATION, NON_ZERO_DURATION, ZERO_COUNT, NON_ZERO_COUNT
master_data  MASTER_REPAIR
sampling     EQUAL_SIZE_BUCKET_..._SAMPLE, M4
profile      of IoTDB's library: SPREAD, PERCENTILE, ZSCORE, ...
signal       of the library: RESAMPLE, HIGHPASS, DTW, ...
spectrum     of the library: FFT, CONV, DWT, ...
shape        of the library: XCORR, PERIOD, SEGMENT, ...
clusters     of the library: CLUSTER
anomaly      of the library: OUTLIER, TWOSIDEDFILTER, LOF, MISSDETECT
filling      of the library: VALUEFILL
repair       of the library: TIMESTAMPREPAIR, VALUEREPAIR
quality      of the library: COMPLETENESS, CONSISTENCY, TIMELINESS, VALIDITY
"""

from __future__ import annotations

from saros_engine.transforms.anomaly import ANOMALY
from saros_engine.transforms.clusters import CLUSTERS
from saros_engine.transforms.filling import FILLING
from saros_engine.transforms.intervals import INTERVALS
from saros_engine.transforms.master_data import MASTER_DATA
from saros_engine.transforms.profile import PROFILE
from saros_engine.transforms.quality import QUALITY
from saros_engine.transforms.repair import REPAIR
from saros_engine.transforms.sampling import SAMPLING
from saros_engine.transforms.selectors import SELECTORS
from saros_engine.transforms.series_transform import Points, SeriesTransform
from saros_engine.transforms.shape import SHAPE
from saros_engine.transforms.signal import SIGNAL
from saros_engine.transforms.spectrum import SPECTRUM

__all__ = ["LIBRARY_TRANSFORMS", "POINT_FUNCTIONS", "Points", "SeriesTransform"]

#: The functions of IoTDB's library. In IoTDB, they must be registered before use.
LIBRARY_TRANSFORMS: dict[str, SeriesTransform] = {
    f.name: f
    for group in (PROFILE, SIGNAL, SPECTRUM, SHAPE, QUALITY, REPAIR, ANOMALY, CLUSTERS, FILLING)
    for f in group
}
POINT_FUNCTIONS: dict[str, SeriesTransform] = {
    **{f.name: f for group in (SELECTORS, INTERVALS, SAMPLING, MASTER_DATA) for f in group},
    **LIBRARY_TRANSFORMS,
}
