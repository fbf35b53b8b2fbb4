"""Backups: a folder of their own with the content of captures; each file is stored once, named by its content.

source        where a backup comes from: a capture here or elsewhere
catalog       what one backup is made of, and its bytes
repository    the folder: catalogs, objects; a backup is there when its catalog is
making        one backup: full, or incremental
points        which backup and which log lead to a point in time: pure
restoring     a new data folder from a backup
verifying     whether all is there and as it was
"""
