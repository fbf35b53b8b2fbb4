"""`saros cluster remove-node --force`: removes permanently lost nodes, even if groups have lost their majority.

The command computes from SHOW REGIONS which data will be lost, shows this to the user, and asks the user to confirm the
removal. After the statement GIVE UP NODE, the nodes are removed like other nodes (`nodes`). Pure, except for
`confirmed`, which asks on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from itertools import groupby
from operator import itemgetter

from saros_cluster.placement.ring import NodeId
from saros_shell.output.cluster_tables import Row
from saros_storage.base.errors import UserMistake

_META = "ConfigRegion"


def named(nodes: Collection[NodeId]) -> str:
    """Return ids of nodes in the form in which a user types them: `2 3`."""
    return " ".join(map(str, sorted(nodes)))


def warning(nodes: Collection[NodeId], regions: Sequence[Row]) -> str:
    """Return a warning that lists the data that may be lost. `regions` are the rows of SHOW REGIONS."""
    lines = [
        f"These nodes will be removed as permanently lost: {named(nodes)}.",
        "Make sure that their processes have ended, and never start them again: writes that they accept would be lost.",
    ]
    for number, rows in groupby(regions, itemgetter("RegionId")):
        lines += _recovery_outlook(nodes, int(str(number)), list(rows))
    return "\n".join(lines) + "\n"


def _recovery_outlook(nodes: Collection[NodeId], number: int, rows: Sequence[Row]) -> list[str]:
    members = [row["DataNodeId"] for row in rows]
    left = [node for node in members if node not in nodes]
    name = "the meta group" if rows[0]["Type"] == _META else f"group {number}"
    if 2 * len(left) > len(members):
        return []
    if not left:
        return [f"  {name}: no replica is left. All its data is LOST; its slots start empty."]
    if 2 * len(left) == len(members):  # each majority had at least one of the remaining replicas
        return [f"  {name}: continues with the data of node {_or(left)}, which has every acknowledged write."]
    return [
        f"  {name}: continues with the data of node {_or(left)}. Writes acknowledged only by the lost nodes are LOST."
    ]


def _or(nodes: Sequence[object]) -> str:
    return " or ".join(map(str, nodes))


def confirmed(nodes: Collection[NodeId]) -> bool:
    """Ask the user to confirm by typing the node ids. Return whether the user did.

    Raises UserMistake if there is no terminal.
    """
    if not sys.stdin.isatty():
        raise UserMistake("confirmation needs a terminal; pass --yes")
    sys.stderr.write(f"To continue, type their ids ({named(nodes)}): ")
    sys.stderr.flush()
    return sys.stdin.readline().split() == named(nodes).split()
