"""The TsFile format, byte-compatible with Apache TsFile: Saros writes version 4 and reads versions 3 and 4.

The modules, from the bytes up:

    structure/  primitives, device ids, statistics, the bloom filter, the index, the tail of the file
    series      one series of a device in the index
    chunk       one chunk's header and page headers
    pages       pages, decompressed and decoded; fused_decode, multi_series_decode: many at once; shared_timestamps
    writer      `TsFileWriter`: chunks in, file out        encoding_selection   the encoding of each chunk
    device_batch  chunk groups of many devices with few rows, encoded together
    reader      `TsFileReader`: implements `TsFileAccess`
    file_outline  the structure of a file, down to the page
    verifier    decodes every page and recomputes every statistic
"""
