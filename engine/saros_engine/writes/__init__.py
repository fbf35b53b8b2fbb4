"""Writes of rows: INSERT statements and batches of columns.

writer                     turns both into tablets, and the schema changes that they need
insert_values, fitting     values of an INSERT as columns; columns as their series take them
batches, joint_writes      batches of several devices, and their outcomes; joint writes of batches
device_kinds               rows of many devices, resolved by kind of device
grouped_writes             concurrent writes of several threads as one call
view_writes                writes through views
"""
