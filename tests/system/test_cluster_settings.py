"""SET, LOAD and SHOW CONFIGURATION in a cluster: options are those of a node, and statements reach all nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from system.cluster_fixture import Nodes
from waiting import wait_until

from saros_storage.base.errors import StorageError, UserMistake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("cluster"), 3, 3)
    yield nodes
    nodes.close()


def value(cluster: Nodes, number: int, option: str, on: str = "") -> object:
    """Return the value of an option, as shown by node `number`."""
    found = {row[0]: row[1] for row in cluster.run(number, f"show configuration {on}")}
    return found[option]


def accepted(cluster: Nodes, statement: str) -> bool:
    """Return whether all nodes have answered a statement. On a busy machine, a node may count as silent."""
    try:
        cluster.run(0, statement)
    except UserMistake:
        raise
    except StorageError:
        return False
    return True


def test_an_option_is_set_on_all_nodes_or_on_one(cluster: Nodes) -> None:
    wait_until(lambda: accepted(cluster, "set configuration 'slow_query_ms'='7s'"))
    assert ["7000"] * 3 == [value(cluster, number, "slow_query_ms") for number in range(3)]
    assert all("slow_query_ms" in (folder / "saros.toml").read_text() for folder in cluster.folders)
    wait_until(lambda: accepted(cluster, "set configuration 'slow_query_ms'='8s' on 3"))
    assert ["7000", "7000", "8000"] == [value(cluster, number, "slow_query_ms") for number in range(3)]
    wait_until(lambda: value(cluster, 0, "slow_query_ms", on="on 3") == "8000")


def test_files_of_all_nodes_are_loaded(cluster: Nodes) -> None:
    for number, folder in enumerate(cluster.folders):
        (folder / "saros.toml").write_text(f"query_timeout_ms = {1_000 + number}\n")
    wait_until(lambda: accepted(cluster, "load configuration"))
    assert ["1000", "1001", "1002"] == [value(cluster, number, "query_timeout_ms") for number in range(3)]


def test_limits_of_background_work_change(cluster: Nodes) -> None:
    limits = "'compaction'='off' 'migration_bytes_per_second'='1MiB' 'rebalance_by'='writes'"
    wait_until(lambda: accepted(cluster, f"set configuration {limits}"))
    for number in range(3):
        found = {row[0]: row[1] for row in cluster.run(number, "show configuration")}
        assert ("off", "1048576", "writes") == tuple(
            found[name] for name in ("compaction", "migration_bytes_per_second", "rebalance_by")
        )


def test_a_refusal_of_another_node_is_told(cluster: Nodes) -> None:
    """One node refuses the statement; the options of the other nodes are set."""
    (cluster.folders[1] / "saros.toml").write_text("slow_query_ms = 'never'\n")
    try:
        change = "set configuration 'compaction'='on'"
        with pytest.raises(StorageError, match=r"the other nodes have the new options; node 2: .*slow_query_ms"):
            cluster.run(0, change)
        wait_until(lambda: not accepted(cluster, change) and value(cluster, 2, "compaction") == "on")
        assert "off" == value(cluster, 1, "compaction")
    finally:
        (cluster.folders[1] / "saros.toml").unlink()
    with pytest.raises(UserMistake, match="the cluster has no node 9"):
        cluster.run(0, "show configuration on 9")
