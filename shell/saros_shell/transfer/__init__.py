"""`saros import` and `saros export`.

importer            CSV and Parquet files into a database, in batches
exporter            series or a query to CSV, Parquet or TsFile
exported_devices    the devices of an export
tsfile_export       sealed TsFiles
"""
