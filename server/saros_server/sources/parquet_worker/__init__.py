"""A process with limited memory that reads Parquet files for an import.

process     starts the process, and requests schemas and rows
__main__    the process itself
"""
