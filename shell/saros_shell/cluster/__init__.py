"""`saros cluster`: create, start, inspect, grow and shrink a cluster.

command            the sub-commands
nodes              add and remove nodes
force_remove       remove nodes that are permanently lost
hosts              a cluster of several machines
login              logging in to the nodes
bootstrap_admin    the first administrator of a cluster that has none
"""
