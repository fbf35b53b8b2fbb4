"""Schema objects other than series: device templates, logical views, continuous queries, tag keys.

declared_series                          a series as CREATE TIMESERIES or a template declares it
templates  views                         device templates; logical views
continuous_queries  continuous_runner    continuous queries; the thread that runs them
tag_keys                                 the keys of tags that are nodes of paths
"""
