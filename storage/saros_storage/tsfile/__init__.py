"""TsFile: the file format, written (v4) and read (v4 and v3), byte-compatible with Apache TsFile.

From the bytes up:
    format      primitives: varints, strings, the bounds-checked cursor, markers and limits
    device_id   device path <-> the segments a file stores; the order of names in a file
    statistics  statistics of pages, chunks and series, as stored and as readers see them
    bloom       the filter over series names
    index       the two-level search tree from device and measurement to chunks
    series      one series of a device in the index
    chunk       one chunk's header and page headers
    pages       pages, decompressed and decoded
    lru         the bounded cache of what was parsed
    metadata    the tail of the file
    writer      `TsFileWriter`: chunks in, file out
    reader      `TsFileReader`: implements `tsfile_access.TsFileAccess`
    survey      what a file holds, down to the page
    checking    every page decoded, every statistic counted again
"""
