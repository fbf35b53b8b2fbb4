"""`saros import` and `saros export`.

input_files         CSV and Parquet files as record batches
importer            writes them in batches
exporter            series or a query to CSV, Parquet or TsFile
exported_devices    the devices of an export
tsfile_export       sealed TsFiles
"""
