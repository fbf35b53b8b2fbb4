"""Carries out changes of the topology: nodes join and leave, slots move.

reconciler         drives the change in progress, on the meta group's leader
slot_moves         moves slots from group to group
peer_requests      calls to other nodes, for the reconciler
unsafe_recovery    recovery of groups that have lost most of their members
meta_voters        the voters of the meta group
"""
