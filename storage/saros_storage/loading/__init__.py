"""LOAD: a TsFile from elsewhere becomes part of a store, as if its points were written now.

    foreign file ─copy, check─▶ staged/17.../source.tsfile ─split by (database, slice)─▶ 17.../1.tsfile  2.tsfile ...
    log entry    schema changes, staged files                    from here on the file is loaded, as a whole
    partitions   active MemTable frozen │ staged file │ next MemTable     the file ranks between them; readers see it
    flusher      links the file into seq/ or unseq/, saves the manifest, removes the staged name    in the log's order

After a crash before the log entry is written, the next start removes the staged files. After a later crash, the entry
is replayed for each partition whose manifest does not name the partition's staged file yet.

    content      the content of a file, the schema that it needs, conflicts: pure
    splitting    splits one file's points into files of one partition each
    staging      the folder of staged files
    loader       one LOAD, up to its log entry
"""
