"""A page with charts of the measurements of `experiments.py`, compared with the measurements of the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plots

_HEAD = """# Experiments

The figures 6.1 to 6.9 of a thesis on expanding a cluster of Apache IoTDB (Li Tianan, *Research on scalability mechanism
of Apache IoTDB cluster*, Tsinghua University, 2021; chapter 6), in shape. `make experiments` measures them anew, writes
`results.json`, and draws this page from it.

The thesis had ten servers of four cores and a machine of clients, 500 million points, 10,000 series. Here **all nodes,
their disks and their clients share one virtual machine of two cores**, with other work beside them, and there are a
hundredth of the points: seconds and rates are not to be compared, only how they grow. Replicas 3, batches of 100 rows
of 50 DOUBLE series, 20 databases, `durability` fsync.
"""


def write_page(folder: Path, results: dict[str, Any]) -> None:
    """Write README.md and the charts of all measured experiments."""
    page = [_HEAD]
    if results.keys() >= {"idle", "loaded"}:
        page += _members(folder, results)
    for name, section in {"migration": _migration, "throughput": _throughput, "ingest": _ingest}.items():
        if name in results:
            headline, *rest = section(folder, results[name])
            page += [headline, _load_of(results[name]), *rest]
    missing = [name for name in ("idle", "loaded", "migration", "throughput", "ingest") if name not in results]
    if missing:
        page.append(f"Not measured yet, or not whole: {', '.join(missing)} (`benchmarks/experiments.py --only ...`).\n")
    (folder / "README.md").write_text("\n".join(page))


def _load_of(*found: dict[str, Any]) -> str:
    loads = " and ".join(f"{each['load']:.0f}" if "load" in each else "(not noted)" for each in found)
    return f"Other work on the machine when this began: a load of {loads}.\n"


def _members(folder: Path, found: dict[str, Any]) -> list[str]:
    idle, loaded = found["idle"], found["loaded"]
    sizes, phases = idle["sizes"], idle["phases"]
    names = {"add": [f"{n} to {n + 1}" for n in sizes], "remove": [f"{n + 1} to {n}" for n in sizes]}
    for number, verb in (("6-1", "add"), ("6-3", "remove")):
        series = {kind: [times[0] for times in found[kind][verb]] for kind in ("idle", "loaded")}
        chart = plots.bars(f"{verb.title()} a node: until slots have moved", "nodes", "seconds", names[verb], series)
        _draw(folder, number, chart)
    chart = plots.bars("Phases of adding a fifth node", "", "seconds", list(phases), {"idle": list(phases.values())})
    _draw(folder, "6-2", chart)
    rows = [
        [names[verb][i], *(f"{seconds:.2f}" for kind in (idle, loaded) for seconds in kind[verb][i])]
        for verb in ("add", "remove")
        for i in range(len(sizes))
    ]
    return [
        "## 6.1 to 6.3 Nodes join and leave\n",
        _load_of(idle, loaded),
        "Stage one ends when all slots belong to the groups that are to have them, and those take writes: that is what",
        "the thesis measures. The whole change ends when all files are where they belong and nobody keeps others.\n",
        *_table(
            ["nodes", "idle: stage one, s", "idle: whole, s", "loaded: stage one, s", "loaded: whole, s"],
            rows,
        ),
        "\nThe thesis, stage one: a node joins in 0.7 to 0.9 s idle and 1.3 to 1.5 s loaded (4 to 10 nodes, growing",
        "with the size); one leaves in 0.18 to 0.27 s idle and 0.46 to 0.56 s loaded.\n",
        "![6.1](figure-6-1.svg)\n",
        "![6.2](figure-6-2.svg)\n",
        "Of the phases, the thesis has the least time in the two-phase step, and most in starting the node's groups.\n",
        "![6.3](figure-6-3.svg)\n",
    ]


def _migration(folder: Path, found: dict[str, Any]) -> list[str]:
    def chart(title: str, rows: Sequence[dict[str, float]], key: str, label: str) -> str:
        return plots.lines(
            title, label, "seconds", {"until all files are there": [(r[key], r["seconds"]) for r in rows]}
        )

    by_points, by_points_long, by_series = (found[name] for name in ("by_points", "by_points_long", "by_series"))
    short, long = found["slice_rows"]
    fixed_series, fixed_points = f"{by_points[0]['series']:,.0f}", f"{by_series[0]['points']:,.0f}"
    title = f"A fourth node gets its data: {fixed_series} series"
    _draw(folder, "6-4", chart(title, by_points, "points", "points in the cluster"))
    title = f"A fourth node gets its data: {fixed_points} points"
    _draw(folder, "6-5", chart(title, by_series, "series", "series"))
    sizes = {"bytes": [row["bytes"] / 1e6 for row in by_series]}
    names = [f"{row['series']:,.0f}" for row in by_series]
    _draw(folder, "6-6", plots.bars(f"Files of {fixed_points} points", "series", "MB", names, sizes))
    rows = [
        [
            f"{slice_rows:,}",
            f"{row['series']:,.0f}",
            f"{row['points']:,.0f}",
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['moved_points']:,.0f}",
            f"{row['moved_bytes'] / 1e6:.1f}",
            f"{row['seconds']:.2f}",
        ]
        for slice_rows, measured in ((short, by_points), (long, by_points_long), (short, by_series))
        for row in measured
    ]
    return [
        "## 6.4 to 6.6 What moves\n",
        "A fourth node joins three that are idle; the seconds are from `ADD NODE` until all files are where they",
        "belong. Files move as they are: no page is decoded. A slice has a file for each device.\n",
        *_table(["rows of a slice", "series", "points", "files, MB", "points the node gets", "MB it gets", "s"], rows),
        "\nFrom the smallest to the largest of the same series, what is more",
        f"{_more(by_points)} with slices of {short:,} rows, and {_more(by_points_long)} with those of {long:,}.",
        "The thesis: about 100 million points and 130,000 series a second; the time grows linearly with points and",
        "series, and so do the files with the series.\n",
        *(f"![{number}](figure-{number.replace('.', '-')}.svg)\n" for number in ("6.4", "6.5", "6.6")),
    ]


def _more(measured: Sequence[dict[str, float]]) -> str:
    few, many = measured[0], measured[-1]
    if many["seconds"] <= few["seconds"]:
        return "takes no longer"
    slope = (many["moved_points"] - few["moved_points"]) / (many["seconds"] - few["seconds"])
    return f"comes at {slope / 1e6:.1f} million points a second"


def _throughput(folder: Path, found: dict[str, Any]) -> list[str]:
    rate, phases = found["rate"], {phase["name"]: phase for phase in found["phases"]}
    joins, leaves = phases["it joins"], phases["it leaves"]
    marks = {"joins": joins["begins"], "in": joins["ends"], "leaves": leaves["begins"], "out": leaves["ends"]}
    series = {"points a second": [(i + 0.5, value) for i, value in enumerate(rate)]}
    _draw(folder, "6-7", plots.lines("A node joins, and leaves", "seconds", "points/s", series, marks))
    first, idle = phases["4 nodes"], phases["an idle process"]
    rows = [
        [
            name,
            f"{phase['ends'] - phase['begins']:.1f}",
            f"{phase['rate']:,.0f}",
            f"{phase['rate'] / first['rate'] - 1:+.0%}",
            f"{phase['worst']:,.0f}",
            f"{phase['worst'] / idle['worst'] - 1:+.0%}",
            *_processors(phase["processor_percent"]),
        ]
        for name, phase in phases.items()
    ]
    names = ["phase", "seconds", "points/s", "to 4 nodes", "worst 5 s, points/s", "to an idle process's worst"]
    return [
        "## 6.7 and 6.8 Writes while nodes join and leave\n",
        "![6.7, 6.8](figure-6-7.svg)\n",
        *_table([*names, "clients, % of a core", "nodes 1 to 4", "the fifth process"], rows),
        "\nA node that joins is one more process on the same two cores. To tell this from the work of the change",
        "itself, an idle server starts beside the cluster first; the worst five seconds of each phase are compared",
        "with those of the phase in which it runs.\n",
        "The thesis: 10 % less during the 18 s in which a node joins, 20 % more afterwards; 25 % less during the 15",
        "s in which one leaves, 20 % less afterwards. More nodes on the same two cores give no more writes.\n",
    ]


def _processors(percent: dict[str, float]) -> list[str]:
    """Return the processor time of the clients, of each original node, and of the added node or process."""

    def told(names: Sequence[str]) -> str:
        return ", ".join(f"{percent[name]:.0f}" for name in names if name in percent) or "-"

    first = [f"node {number}" for number in range(1, 5)]
    clients = [name for name in percent if name.startswith("client")]
    return [told(clients), told(first), told([name for name in percent if name not in (*clients, *first)])]


def _ingest(folder: Path, found: dict[str, Any]) -> list[str]:
    names = [str(size) for size in found["sizes"]]
    _draw(folder, "6-9", plots.bars("Writes by size", "nodes", "points/s", names, {"points a second": found["rates"]}))
    rows = [[size, f"{rate:,.0f}"] for size, rate in zip(names, found["rates"], strict=True)]
    return [
        "## 6.9 Writes by size of the cluster\n",
        *_table(["nodes", "points/s"], rows),
        "\nThe thesis: 4 to 7 million points a second, growing linearly with the servers. Here the servers are",
        "processes that share two cores: what can be seen is what each more of them costs.\n",
        "![6.9](figure-6-9.svg)\n",
    ]


def _draw(folder: Path, number: str, chart: str) -> None:
    (folder / f"figure-{number}.svg").write_text(chart)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows)]
