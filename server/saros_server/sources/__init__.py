"""CSV and Parquet files that are imported: their rows as typed columns, and the series that these go to.

input_files     files as batches of times and typed columns
source_layout   the columns of a batch, and their types; source_times, source_types, time_column: parts of that
source_options  how a file is read
destination     the devices and series of a file's columns
series_types    the types of series that exist, and those that an import creates
"""
