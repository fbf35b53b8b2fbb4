"""`saros import` and `saros export`.

importer            files into a database, in batches
replaced            points of an import that replace others of it
exporter            series or a query to CSV, JSON lines, Parquet or TsFile
exported_devices    the devices of an export
tsfile_export       sealed TsFiles
"""
