"""`saros import` and `saros export`.

importer            files into a database, in batches
replaced            counts points of an import that replace earlier ones
exporter            series or a query to CSV, JSON lines, Parquet or TsFile
exported_devices    the devices of an export
tsfile_export       sealed TsFiles
"""
