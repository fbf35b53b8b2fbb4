"""Placement: which group of nodes holds which data. Pure: tables are values, a change makes a new one.

<database, time slice> -hash-> slot -table-> group (its head's id) -table-> members
"""
