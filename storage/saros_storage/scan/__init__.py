"""The interface between storage and its readers.

reading            scan requests, series readers, summaries
snapshot           a partition at one moment: files, MemTables, tombstones, ranks
tsfile_access      the interface of a TsFile for readers
read_point         which entries a read sees
activity           points written and read
type_conversion    series whose type was changed
"""
