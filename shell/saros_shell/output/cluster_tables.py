"""The two tables of `saros cluster status`, which are made from the results of SHOW CLUSTER and SHOW REGIONS.

    node | address | pid | state | version | role       group | members | leader | term | applied | lag | ...

Pure: rows in, texts out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec
import pyarrow as pa

from saros_cluster.placement.ring import NodeId
from saros_shell.output.render import render_table

_UNKNOWN = "-"
_META = "ConfigRegion"
Row = dict[str, object]


class ClusterReport(msgspec.Struct, frozen=True):
    """The rows of SHOW CLUSTER DETAILS, of SHOW REGIONS, and of SHOW CLUSTER CHANGE."""

    nodes: Sequence[Row]
    regions: Sequence[Row]
    change: Sequence[Row] = ()


def leaderless(regions: Sequence[Row]) -> list[str]:
    """Return each group that has no known leader."""
    return [_name(rows[0]) for rows in _groups(regions) if _leader(rows) is None]


def unreachable(nodes: Sequence[Row]) -> list[str]:
    """Return the nodes that did not answer the reporting node."""
    return [str(row["NodeID"]) for row in nodes if row["Status"] == "Unknown"]


def waits_for(address: str, told: ClusterReport) -> str | None:
    """Return the reason for which the node at `address` still waits, or None if it waits for nothing.

    The text names the nodes that do not answer, because they may be the reason for the wait.
    """
    groups, nodes = leaderless(told.regions), unreachable(told.nodes)
    silent = f"{_named('node', nodes)} not answering {address}"
    if groups:
        return f"{_named('group', groups)} without a leader ({silent if nodes else f'as seen by {address}'})"
    return silent if nodes else None


def _named(word: str, ids: Sequence[str]) -> str:
    return f"{word}{'' if len(ids) == 1 else 's'} {', '.join(ids)}"


def waiting(nodes: Sequence[Row]) -> list[str]:
    """Return the nodes that were admitted and have not joined yet."""
    return [str(row["NodeID"]) for row in nodes if row["Status"] == "Joining"]


def change_line(rows: Sequence[Row]) -> str:
    """Return the progress of a cluster change, from the row of SHOW CLUSTER CHANGE.

    `adding node 4: moving data, 1,200 of 2,500 slots, 6.0 of 9.0 MB (1.5 MB/s, 2 s left), 3 of 5 groups done`
    """
    (row,) = rows
    verbs = (("Joining", "adding node"), ("Leaving", "removing node"))
    nodes = [f"{verb} {row[name]}" for name, verb in verbs if row[name]]
    parts = [_STAGES.get(str(row["Stage"]), str(row["Stage"])), _slots(row), _fetched(row), _regrouped(row)]
    return f"{', '.join(nodes) or 'rebalancing'}: {', '.join(filter(None, parts))}"


#: The stages of a change (`saros_cluster.topology.change`), in terms that operators know.
_STAGES = {
    "preparing": "preparing",
    "moving": "moving data",
    "loading": "copying files",
    "regrouping": "changing the replicas of groups",
    "aborting": "undoing the change",
}


def _slots(row: Row) -> str:
    return f"{row['SlotsArrived']:,} of {row['Slots']:,} slots" if row["Slots"] else ""


def _regrouped(row: Row) -> str:
    return f"{row['Regrouped']} of {row['Regroups']} groups done" if row["Regroups"] else ""


def _fetched(row: Row) -> str:
    """Return the progress of the files that nodes fetch from other nodes, and the time left, or "" without files."""
    expected, came, rate = (float(str(row[name])) for name in ("Bytes", "BytesArrived", "BytesPerSecond"))
    if not expected:
        return ""
    left = f", {(expected - came) / rate:.0f} s left" if rate and came < expected else ""
    return f"{came / 1e6:,.1f} of {expected / 1e6:,.1f} MB ({rate / 1e6:.1f} MB/s{left})"


def node_rows(addresses: Mapping[NodeId, str], pids: Mapping[NodeId, int], told: ClusterReport | None) -> list[Row]:
    """Return a row per node.

    `pids` has the process ids of the running nodes. If `told` is None, the values that nodes report are unknown.
    """
    known = {} if told is None else {row["NodeID"]: row for row in told.nodes}
    regions: Sequence[Row] = () if told is None else told.regions
    return [
        {
            "node": node,
            "address": address,
            "pid": str(pids.get(node, _UNKNOWN)),
            "state": _state(node in pids, known.get(node)),
            "version": _text(known.get(node, {}).get("Version")),
            "role": _role(node, regions) if node in pids else _UNKNOWN,
        }
        for node, address in addresses.items()
    ]


def node_rows_elsewhere(told: ClusterReport) -> list[Row]:
    """Return a row per node of a cluster on several machines, whose processes are not visible on this machine."""
    return [
        {
            "node": row["NodeID"],
            "address": f"{row['RpcAddress']}:{row['RpcPort']}",
            "rack": str(row["Rack"]) or _UNKNOWN,
            "state": _state(runs=True, known=row),
            "version": _text(row["Version"]),
            "role": _UNKNOWN if row["Status"] == "Unknown" else _role(NodeId(int(str(row["NodeID"]))), told.regions),
        }
        for row in told.nodes
    ]


def _state(runs: bool, known: Row | None) -> str:
    if not runs:
        return "down"
    if known is not None and known["Status"] == "Joining":
        return "joining"
    return "unreachable" if known is not None and known["Status"] == "Unknown" else "up"


def _role(node: NodeId, regions: Sequence[Row]) -> str:
    here = [row for row in regions if row["DataNodeId"] == node]
    led = [_name(row) for row in here if row["Role"] == "Leader"]
    return f"leads {', '.join(led)}" if led else "follows" if here else _UNKNOWN


def group_rows(regions: Sequence[Row]) -> list[Row]:
    """Return a row per group, with its members in ring order.

    Term and applied index are those of the group's leader.
    """
    return [_group_row(rows) for rows in _groups(regions)]


def _group_row(rows: list[Row]) -> Row:
    leader = _leader(rows)
    shown: Row = {} if leader is None else leader
    followers = [row for row in rows if row is not leader]
    return {
        "group": _name(rows[0]),
        "members": ", ".join(str(row["DataNodeId"]) for row in rows),
        "leader": str(shown.get("DataNodeId", "none")),
        "term": _text(shown.get("Term")),
        "applied": _text(shown.get("Applied")),
        "lag": ", ".join(f"{row['DataNodeId']}: {_text(row['Lag'], '?')}" for row in followers) or _UNKNOWN,
        "slots": rows[0]["SeriesSlotNum"],
        "databases": str(rows[0]["Database"]) or _UNKNOWN,
    }


def _groups(regions: Sequence[Row]) -> list[list[Row]]:
    return [list(rows) for _, rows in groupby(regions, itemgetter("RegionId"))]


def _leader(rows: Sequence[Row]) -> Row | None:
    """Return the row of the leader with the highest term: an earlier leader may not know of its successor yet."""
    return max((row for row in rows if row["Role"] == "Leader"), key=_term, default=None)


def _term(row: Row) -> int:
    return row["Term"] if isinstance(row["Term"], int) else 0


def _name(row: Row) -> str:
    return "meta" if row["Type"] == _META else str(row["RegionId"])


def _text(value: object, unknown: str = _UNKNOWN) -> str:
    return unknown if value is None else str(value)


def table(rows: Sequence[Row]) -> str:
    """Return aligned rows with a header. There must be at least one row, and all rows must have the same columns."""
    shown = pa.Table.from_pylist(list(rows))
    *lines, _ = render_table(shown.schema, shown.to_batches())
    return "".join(line + "\n" for line in lines)
