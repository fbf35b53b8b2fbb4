"""`saros import` and `saros export`.

importer            loads files into a database, in batches
replaced            counts points of an import that replace earlier points
exporter            writes series or a query's rows to CSV, JSON lines, Parquet or TsFile
exported_devices    finds the devices of an export
tsfile_export       writes sealed TsFiles
"""
