"""Translate Saros' status codes into the status codes of IoTDB.

Most codes have the same meaning in Saros and in IoTDB. The table lists the others: conditions for which IoTDB has a
different code, and the codes from 2000 on, which mean something else in IoTDB. Pure: any thread.
"""

from __future__ import annotations

SUCCESS = 200
UNSUPPORTED_DIALECT = 205
UNSUPPORTED = 300
MULTIPLE_ERROR = 302
ILLEGAL_PARAMETER = 303
_INTERNAL = 305
REDIRECTION = 400
_METADATA, _STORAGE, _ALIGNED, _WAL = 507, 601, 609, 610
_PARSE, SEMANTIC, NO_SUCH_QUERY = 700, 701, 714
_TOO_MANY_QUERIES, _NO_MEMORY, _TIMEOUT = 717, 719, 720
NOT_LOGGED_IN, _AUTH, _ILLEGAL_PASSWORD = 802, 815, 820
_NO_REPLICA, _NO_CONNECTION, _DATANODE_MISSING, _TOO_FEW_DATANODES = 1012, 1007, 1004, 1003
_LOAD, _SYNC, _FUNCTION_DROP, _FUNCTION_RUN, _FUNCTION_EXISTS = 1100, 1103, 1205, 1206, 1207

#: Maps each of Saros' codes to IoTDB's code; codes that are not listed are the same in both systems.
IOTDB_CODES = {
    504: 500,  # a missing database
    511: _ALIGNED,
    512: _METADATA,  # a missing template
    712: _TIMEOUT,
    2000: _STORAGE,
    2001: _INTERNAL,
    2002: UNSUPPORTED,
    2003: ILLEGAL_PARAMETER,
    2004: 202,
    2005: SEMANTIC,
    2006: _PARSE,
    2007: SEMANTIC,
    2008: SEMANTIC,
    2010: _STORAGE,
    2011: UNSUPPORTED,
    2012: _STORAGE,
    2013: _WAL,
    2014: NOT_LOGGED_IN,
    2015: 201,
    2016: _NO_CONNECTION,
    2017: _NO_REPLICA,
    2018: _INTERNAL,
    2019: _INTERNAL,
    2020: MULTIPLE_ERROR,
    2021: _INTERNAL,
    2022: 304,
    2023: _DATANODE_MISSING,
    2024: _TOO_FEW_DATANODES,
    2025: 304,
    2026: _INTERNAL,
    2027: _LOAD,
    2030: _INTERNAL,
    2031: _TOO_MANY_QUERIES,
    2032: NO_SUCH_QUERY,
    2033: _NO_MEMORY,
    2034: _TOO_MANY_QUERIES,
    2040: _AUTH,
    2041: _ILLEGAL_PASSWORD,
    2042: _AUTH,
    2043: _AUTH,
    2050: SEMANTIC,
    2051: SEMANTIC,
    2052: ILLEGAL_PARAMETER,
    2053: ILLEGAL_PARAMETER,
    2060: _SYNC,
    2061: _SYNC,
    2062: _SYNC,
    2063: _SYNC,
    2064: _SYNC,
    2065: _SYNC,
    2070: _LOAD,
    2080: _FUNCTION_RUN,
    2081: _FUNCTION_EXISTS,
    2082: _FUNCTION_DROP,
}
