"""TsFile: the file format, written (v4) and read (v4 and v3), byte-compatible with Apache TsFile.

From the bytes up:
    structure/  primitives, device ids, statistics, the filter over names, the index, the tail of the file
    series      one series of a device in the index
    chunk       one chunk's header and page headers
    pages       pages, decompressed and decoded; fused_decode, multi_series_decode: many at once; shared_timestamps
    writer      `TsFileWriter`: chunks in, file out        encoding_selection   which encoding a chunk gets
    reader      `TsFileReader`: implements `TsFileAccess`
    file_outline  what a file holds, down to the page
    verifier    every page decoded, every statistic counted again
"""
