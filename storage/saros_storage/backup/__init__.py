"""Backups: a folder with the files of captures. Each distinct content is stored once, in a file named by its SHA-256.

source        the origin of a backup: a capture in this process or elsewhere
catalog       the parts of one backup, and their encoding
repository    the folder: catalogs and objects; a backup exists once its catalog is written
making        makes one backup: full, or incremental
points        the backup and the logs that lead to a point in time: pure
restoring     creates a new data folder from a backup
verifying     checks that everything exists and is unchanged
"""
