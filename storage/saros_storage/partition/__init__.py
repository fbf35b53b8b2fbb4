"""Partitions: entries applied in memory, MemTables, and the files that MemTables become.

Modules:

    partitions        all partitions of a region, and how an entry changes them
    partition         one partition: MemTables, files, tombstones, ranks; up to which log index its files are complete
    memtable          rows in memory, by device
    short_devices     devices with few rows, collected for a flush
    flush_files       writes a MemTable as files
    partition_files   opens the files of a partition's folder, and removes files that the manifest does not name
    partition_status  rows of SHOW PARTITIONS and SHOW FILES
"""
