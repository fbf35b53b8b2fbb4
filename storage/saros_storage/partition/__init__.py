"""Partitions: entries applied in memory, MemTables, and the files that MemTables become.

partitions        all partitions of a region, and how an entry changes them
partition         one partition: MemTables, files, tombstones, ranks; which entries its files contain already
memtable          rows in memory, by device
flush_files       writes a MemTable as files
partition_files   the files of a partition's folder: opens them, and removes those that no manifest names
partition_status  rows of SHOW PARTITIONS and SHOW FILES
"""
