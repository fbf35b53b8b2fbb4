"""Execution of queries: operators in drivers, exchanges between fragments, and the end of each query.

queries             plans and executions of SELECTs, until all their resources are released
build               operators of plan nodes
driver  exchange    one fragment's operators on the worker threads; buffers between fragments
execution  result   one query; its blocks for the client
explain             EXPLAIN and EXPLAIN ANALYZE
merge_execution     a MERGE, which can be cancelled like a query
"""
