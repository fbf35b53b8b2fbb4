"""Execution of queries: operators in drivers, exchanges between fragments, and the end of each query.

queries             plans SELECTs, and tracks their executions until all resources are released
build               builds the operators of plan nodes
driver  exchange    runs one fragment's operators on the worker threads; buffers blocks between fragments
execution  result   runs one query; passes its blocks to the client
explain             formats the output of EXPLAIN and EXPLAIN ANALYZE
merge_execution     executes a MERGE, which can be cancelled like a query
"""
