"""Files to import: their rows as typed columns, and the series to write.

input_files     files as batches of times and typed columns; csv_files, annotated_csv, json_lines, parquet_files
parquet_worker  a process that reads Parquet files, with a limit on its memory
opened_file     the format of a file, and its decompressed bytes
source_layout   the columns of a batch, and their types; source_times, iso_8601, source_types, time_column: its parts
source_options  the options for reading a file
destination     the devices and series of a file's columns
series_types    the types of existing series, and of those that an import creates
"""
