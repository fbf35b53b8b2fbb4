"""Nodes and slots while a cluster changes: the state and its transitions. Pure.

topology       nodes, groups and their members
change         a change of nodes in progress, and its progress
commands       the commands of the meta group that advance it, as bytes
transitions    the next command of a change
"""
