"""Nodes and slots while a cluster changes: the state and its transitions. Pure.

topology       nodes, groups and their members
change         a change of nodes or slots in progress, and its stage
commands       the commands of the meta group that advance it, as bytes
transitions    the effect of each command on the state
"""
