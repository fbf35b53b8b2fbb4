"""A process that reads Parquet files for an import, with a limit on its memory.

process     starts the process, and requests schemas and rows
__main__    the process itself
"""
