"""Writes of rows: INSERT statements and batches of columns.

writer                     turns both into tablets, and finds the schema changes that these need
insert_values, fitting     convert the values of an INSERT to columns, and columns to the types of their series
batches, joint_writes      batches of several devices, and the batches' outcomes; joint writes of batches
device_kinds               resolves rows of many devices by kind of device
grouped_writes             concurrent writes of several threads as one call
view_writes                writes through views
"""
