"""Placement: which group of nodes holds which data. Pure: tables are values, and a change returns a new table.

<database, time slice> -hash-> slot -table-> group (its head's id) -table-> members
"""
