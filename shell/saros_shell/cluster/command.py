"""`saros cluster`: the table of sub-commands, and `up`, `status`, `start` and `down` for a cluster on this machine.

    up      create nodes in DIR/node1 ... and start them, or start the nodes that are down; wait for the leaders
    status  processes and groups, as reported by any node that answers
    secure  add an administrator to a cluster that was created without one: `bootstrap_admin`
    add-node, remove-node, replace-node     `nodes`
    init, certificates, join                nodes on several machines: `hosts`

In a cluster with users, nodes report the state of the cluster only to logged-in users (`login`). Without a login, `up`
waits only for the processes.

Exit codes: 0 success, 1 something does not run, 2 wrong usage, 3 (`status`) nothing runs, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

import saros
from saros_cluster.placement.members import META_VOTERS, META_VOTERS_DEFAULT
from saros_cluster.placement.ring import NodeId
from saros_server.auth.passwords import Cost
from saros_server.auth.security import first_administrator
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import LOG_LEVELS, ConfigurationError
from saros_server.config.configuration import load as load_configuration
from saros_server.config.data_folder import reason
from saros_server.local import local_cluster
from saros_server.local.local_cluster import LocalCluster
from saros_server.sources.plurals import counted
from saros_shell.cluster import bootstrap_admin, force_remove, hosts
from saros_shell.cluster import nodes as cluster_growing
from saros_shell.cluster.login import Login, connect_to, login_of, login_options
from saros_shell.cluster.nodes import cluster_report, rows_of
from saros_shell.output.cluster_tables import (
    ClusterReport,
    change_line,
    group_rows,
    leaderless,
    node_rows,
    node_rows_elsewhere,
    table,
    unreachable,
    waits_for,
)
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.io.disk import LocalDisk
from saros_wire.protocol import DEFAULT_PORT

_DIRECTORY = "./cluster"
_NODES, _REPLICAS = 3, 3
_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.2
#: A running node answers immediately. The nodes are queried one by one, so the fail-over time of each query is short.
_ASK_SECONDS, _FAILOVER_SECONDS = 5.0, 1.0
_NOTHING_RUNS = 3
_INTERRUPTED = 130
#: Folders and files, some with password hashes, are readable only by their owner.
_UMASK = 0o077
#: Error codes for a wrong password and for missing privileges. After these errors, no other node is tried, because it
#: would refuse the user, too.
_NOT_LET_IN = (801, 803, 2040)


class SubCommand(msgspec.Struct, frozen=True):
    """A sub-command of `saros cluster`: its help text, its options, and the function that runs it."""

    what: str
    #: A function that adds the options to a parser.
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    #: The message after an interruption.
    interrupted: str


def main(arguments: Sequence[str]) -> int:
    """Run a sub-command and return its exit code."""
    options = parser().parse_args(arguments)
    command = COMMANDS[options.command]
    umask = os.umask(_UMASK)
    try:
        return command.run(options)
    except (StorageError, ConfigurationError, saros.Error, OSError) as error:
        sys.stderr.write(f"saros cluster {options.command}: {reason(error)}\n")
        return 2 if isinstance(error, UserMistake | ConfigurationError) else 1
    except KeyboardInterrupt:
        sys.stderr.write(f"saros cluster {options.command}: interrupted; {command.interrupted}\n")
        return _INTERRUPTED
    finally:
        os.umask(umask)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros cluster`."""
    made = CommandParser(prog="saros cluster", description="Manage a cluster on this machine, or a node of one.")
    words = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.options(words.add_parser(name, help=command.what, description=command.what))
    return made


# ---------------------------------------------------------------------------------------------- up, start, down


def _up_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--nodes", type=int, metavar="N", help=f"number of nodes (default {_NODES})")
    made.add_argument("--replicas", type=int, metavar="N", help=f"copies of all data (default {_REPLICAS})")
    made.add_argument(
        "--meta-voters",
        type=int,
        choices=META_VOTERS,
        help=f"nodes that vote in the meta group (default {META_VOTERS_DEFAULT})",
    )
    made.add_argument(
        "--base-port", type=int, default=DEFAULT_PORT, metavar="N", help=f"first port to try (default {DEFAULT_PORT})"
    )
    made.add_argument("--auth", action="store_true", help="create user root in a new cluster; clients log in")
    made.add_argument("--init-admin-password-file", metavar="FILE", help="root's password, instead of a one-time one")
    login_options(made)
    _start_options(made)


def _up(options: argparse.Namespace) -> int:
    disk = LocalDisk()
    with local_cluster.exclusive_lock(options.dir, disk):
        cluster, login = local_cluster.find(options.dir, disk), None
        if cluster is None:
            cluster, login = _make(options, disk)
        _check_as_made(cluster, options)
        login = login or login_of(cluster, options)
        failures = local_cluster.start(cluster, cluster.nodes, options.log_level, options.timeout, Progress().say)
    if failures:
        return _failed("up", failures)
    waiting = None if login is None else _wait_for_leaders(cluster, login, options.timeout)
    _print_tables(cluster, login)
    targets = ",".join(cluster.address(node) for node in cluster.nodes)
    user = "" if cluster.file.administrator is None else f"{cluster.file.administrator.name}:PASSWORD@"
    sys.stdout.write(f"\nconnect with: saros shell saros://{user}{targets}\n")
    if waiting is not None:
        sys.stderr.write(f"saros cluster up: after {options.timeout:.0f} s: {waiting}; the logs are node*/server.log\n")
    return 0 if waiting is None else 1


def _make(options: argparse.Namespace, disk: LocalDisk) -> tuple[LocalCluster, Login | None]:
    """Create a cluster. Return the cluster and a login for its nodes.

    With --auth, the login is that of the administrator. The login is None if the cluster has no users, or if the
    password must be changed first.
    """
    nodes = _NODES if options.nodes is None else options.nodes
    replicas = min(_REPLICAS, nodes) if options.replicas is None else options.replicas
    meta_voters = options.meta_voters or META_VOTERS_DEFAULT
    if not (options.auth or options.init_admin_password_file):
        made = local_cluster.make(options.dir, nodes, replicas, options.base_port, disk, meta_voters=meta_voters)
        return made, None
    cost = Cost(load_configuration().values.password_cost)
    administrator, password = first_administrator(cost, options.init_admin_password_file)
    cluster = local_cluster.make(options.dir, nodes, replicas, options.base_port, disk, administrator, meta_voters)
    if not administrator.must_change:
        return cluster, Login(administrator.name, password)
    # Print the password before starting the nodes, so that the user has the password even if the start fails.
    sys.stdout.write(bootstrap_admin.one_time(administrator, password))
    sys.stdout.flush()
    return cluster, None


def _check_as_made(cluster: LocalCluster, options: argparse.Namespace) -> None:
    """Raise UserMistake if the options differ from those with which the cluster was created."""
    for name, asked, made in (
        ("nodes", options.nodes, len(cluster.file.nodes)),
        ("replicas", options.replicas, cluster.file.replicas),
        ("meta-voters", options.meta_voters, cluster.file.meta_voters or META_VOTERS_DEFAULT),
    ):
        if asked not in (None, made):
            raise UserMistake(
                f"the cluster in {cluster.directory} was created with --{name} {made}, which cannot be changed to"
                f" {asked}; omit --{name}, or create another cluster with another --dir"
                + ("; to add nodes, run saros cluster add-node" if name == "nodes" else "")
            )
    if options.auth and cluster.file.administrator is None:
        raise UserMistake(
            f"the cluster in {cluster.directory} was created without --auth and has no users; omit --auth, or first add"
            f" an administrator with saros cluster secure --dir {cluster.directory}"
        )


def _wait_for_leaders(cluster: LocalCluster, login: Login, timeout_s: float) -> str | None:
    """Wait until every node answers, reaches the other nodes and knows a leader of every group.

    After the timeout, return a text that describes the next missing condition. Return None if nothing is missing.
    """
    progress = Progress()
    limit = time.monotonic() + timeout_s
    waiting = {node: _missing(cluster.address(node), login) for node in cluster.nodes}
    while (missing := next((text for text in waiting.values() if text), None)) and time.monotonic() < limit:
        progress.say(f"waiting: {missing}")
        time.sleep(_POLL_SECONDS)
        waiting = {node: _missing(cluster.address(node), login) for node, text in waiting.items() if text}
    return missing


def _missing(address: str, login: Login) -> str | None:
    """Return a text that describes the condition for which a node still waits, or None if it waits for nothing."""
    try:
        told = _ask(address, login)
    except saros.Error as error:
        return f"{address} does not answer: {error}"
    return waits_for(address, told)


def _start_node_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--node", type=int, required=True, metavar="K", help="id of the node")
    _start_options(made)


def _start_node(options: argparse.Namespace) -> int:
    cluster = _found(options.dir)
    (node,) = _chosen(cluster, options.node)
    with local_cluster.exclusive_lock(options.dir, LocalDisk()):
        failures = local_cluster.start(cluster, [node], options.log_level, options.timeout, Progress().say)
    if failures:
        return _failed("start", failures)
    sys.stdout.write(f"node {node} serves {cluster.folder(node)} at saros://{cluster.address(node)}\n")
    return 0


def _down_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--node", type=int, metavar="K", help="only this node")


def _down(options: argparse.Namespace) -> int:
    cluster = _found(options.dir)
    nodes = [node for node in _chosen(cluster, options.node) if cluster.is_started(node)]
    left = local_cluster.stop(cluster, nodes, Progress().say)
    stopped = [str(node) for node in nodes if node not in left]
    sys.stdout.write(f"stopped: {', '.join(stopped)}\n" if stopped else "no node was running\n")
    return _failed("down", dict.fromkeys(left, "it has not ended yet")) if left else 0


def _secure_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--init-admin-password-file", metavar="FILE", help="root's password, instead of a one-time one")
    _start_options(made)


def _secure(options: argparse.Namespace) -> int:
    disk = LocalDisk()
    _found(options.dir)
    with local_cluster.exclusive_lock(options.dir, disk):
        failures = bootstrap_admin.secure(_found(options.dir), options, disk, Progress().say)
    return _failed("secure", failures) if failures else 0


def _failed(command: str, failures: Mapping[NodeId, str]) -> int:
    for node, why in sorted(failures.items()):
        sys.stderr.write(f"saros cluster {command}: node {node}: {why}\n")
    return 1


# ---------------------------------------------------------------------------------------------- status


def _status_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--to", metavar="TARGET", help="saros://host:port, for a cluster of several machines")
    made.add_argument("--watch", action="store_true", help="wait for a running change to end first")
    login_options(made)


def _status_elsewhere(options: argparse.Namespace) -> int:
    """Print the status of a cluster on several machines, as reported by one of its nodes."""
    with connect_to(options.to, options) as connection:
        if options.watch:
            cluster_growing.wait_for_change(connection, Progress().say)
        told = cluster_report(connection)
    sys.stdout.write(table(node_rows_elsewhere(told)))
    _print_groups(told)
    return 1 if unreachable(told.nodes) or leaderless(told.regions) else 0


def _status(options: argparse.Namespace) -> int:
    if options.to is not None:
        return _status_elsewhere(options)
    cluster = _found(options.dir)
    running = [node for node in cluster.nodes if cluster.running(node) is not None]
    for node, why in cluster.problems.items():
        sys.stderr.write(f"saros cluster status: node {node}: {why}\n")
    login = login_of(cluster, options)
    if options.watch and login is not None and running:
        with cluster_growing.connect(cluster, login) as connection:
            cluster_growing.wait_for_change(connection, Progress().say)
    well = _print_tables(cluster, login)
    if not running:
        sys.stdout.write(f"\nno node is running; start them with saros cluster up --dir {options.dir}\n")
        return _NOTHING_RUNS
    return 0 if well else 1


def _print_tables(cluster: LocalCluster, login: Login | None) -> bool:
    """Print nodes and groups. Return whether all nodes are up and all groups have a leader.

    Without a login, the groups are unknown, and the result depends only on the nodes.
    """
    running = {node: found.pid for node in cluster.nodes if (found := cluster.running(node)) is not None}
    told = None if login is None else _ask_any(cluster, list(running), login)
    nodes = node_rows({node: cluster.address(node) for node in cluster.nodes}, running, told)
    sys.stdout.write(table(nodes))
    if login is None:
        sys.stdout.write("\nto see the groups, log in: --user NAME, with the password in SAROS_PASSWORD\n")
        return len(running) == len(cluster.nodes)
    if told is None:
        return False
    _print_groups(told)
    return all(row["state"] in ("up", "joining") for row in nodes) and not leaderless(told.regions)


def _print_groups(told: ClusterReport) -> None:
    sys.stdout.write("\n" + table(group_rows(told.regions)))
    if told.change:
        sys.stdout.write(f"\n{change_line(told.change)}\n")


def _ask_any(cluster: LocalCluster, running: Sequence[NodeId], login: Login) -> ClusterReport | None:
    for node in running:
        try:
            return _ask(cluster.address(node), login)
        except saros.Error as error:
            sys.stderr.write(f"saros cluster: node {node} does not answer: {error}\n")
    return None


def _ask(address: str, login: Login) -> ClusterReport:
    """Return the report of the node at `address`. Raises saros.Error, or UserMistake if the login is refused."""
    target, user, password = f"saros://{address}", login.user, login.password
    try:
        with saros.connect(
            target, user=user, password=password, failover_s=_FAILOVER_SECONDS, timeout=_ASK_SECONDS
        ) as connection:
            return cluster_report(connection)
    except saros.Error as error:
        if error.code in _NOT_LET_IN:
            raise UserMistake(f"{address}: {error}", code=error.code) from error
        raise


# ---------------------------------------------------------------------------------------------- add-node, remove-node


def _add_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--nodes", type=int, default=1, metavar="N", help="number of nodes (default 1)")
    made.add_argument("--base-port", type=int, metavar="N", help="first port to try (default: that of the first node)")
    made.add_argument("--no-wait", action="store_true", help="return when the nodes begin to join")
    login_options(made)
    _start_options(made)


def _add_nodes(options: argparse.Namespace) -> int:
    if not 1 <= options.nodes <= local_cluster.NODES_MAX:
        raise UserMistake(f"--nodes is {options.nodes}: expected from 1 to {local_cluster.NODES_MAX}")
    disk, say = LocalDisk(), Progress().say
    with local_cluster.exclusive_lock(options.dir, disk):
        cluster = _found(options.dir)
        login = _required_login(cluster, options)
        cluster, nodes = cluster_growing.admit(cluster, login, options.nodes, options.base_port, disk)
        failures: dict[NodeId, str] = {}
        for node in nodes:  # in separate calls, so that a node that has started does not wait for the next nodes
            failures |= local_cluster.start(cluster, [node], options.log_level, options.timeout, say)
    if failures:
        return _failed("add-node", failures)
    out = cluster_growing.add(cluster, login, nodes, say, wait=not options.no_wait)
    if options.no_wait:
        sys.stdout.write(f"joining: {', '.join(map(str, nodes))}; saros cluster status --watch --dir {options.dir}\n")
        return 0
    if out:
        return _failed("add-node", out)
    waiting = _wait_for_leaders(cluster, login, options.timeout)
    _print_tables(cluster, login)
    if waiting is not None:
        sys.stderr.write(f"saros cluster add-node: after {options.timeout:.0f} s: {waiting}\n")
    return 0 if waiting is None else 1


def _remove_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--node", type=int, required=True, nargs="+", metavar="K", help="id of the node, or several")
    made.add_argument(
        "--force",
        action="store_true",
        help="the nodes are permanently lost; groups without a majority continue with the remaining replicas",
    )
    made.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    login_options(made)


def _remove_node(options: argparse.Namespace) -> int:
    cluster = _found(options.dir)
    nodes = [node for wanted in options.node for node in _chosen(cluster, wanted)]
    login, say = _required_login(cluster, options), Progress().say
    if options.force:
        if not _is_confirmed(cluster, login, nodes, yes=options.yes):
            sys.stderr.write("nothing was changed\n")
            return 1
        cluster_growing.remove_lost(cluster, login, nodes, say)
        return max(_end_removed("remove-node", cluster, node, say) for node in nodes)
    left, copies = len(set(cluster.nodes) - set(nodes)), cluster.file.replicas
    if len(nodes) > 1 and left < copies:
        raise UserMistake(f"{counted(left, 'node')} would be left for {copies} replicas; add nodes first", code=2024)
    ended = 0
    for node in nodes:  # stop each node before removing the next one, which may fail
        cluster_growing.remove(cluster, login, node, say)
        ended = max(ended, _end_removed("remove-node", cluster, node, say))
    return ended


def _is_confirmed(cluster: LocalCluster, login: Login, nodes: Sequence[NodeId], *, yes: bool) -> bool:
    running = [node for node in nodes if cluster.is_taken(node)]
    if running:
        raise UserMistake(
            f"node {running[0]} is running, so it is not lost; stop it first with saros cluster down --node"
            f" {running[0]} --dir {cluster.directory}, or remove it without --force"
        )
    with cluster_growing.connect(cluster, login, nodes) as connection:
        sys.stderr.write(force_remove.warning(nodes, rows_of(connection, "show regions")))
    return yes or force_remove.confirmed(nodes)


def _end_removed(command: str, cluster: LocalCluster, node: NodeId, say: Callable[[str], None]) -> int:
    if local_cluster.stop(cluster, [node], say):
        return _failed(command, {node: "it has left the cluster, but its process has not ended yet; run this again"})
    local_cluster.note_removed(cluster, node, LocalDisk())
    sys.stdout.write(f"node {node} has left the cluster; {cluster.folder(node)} may be deleted\n")
    return 0


def _replace_options(made: argparse.ArgumentParser) -> None:
    _directory_option(made)
    made.add_argument("--node", type=int, required=True, metavar="K", help="id of the node")
    login_options(made)
    made.add_argument("--base-port", type=int, metavar="N", help="first port to try (default: that of the first node)")
    _start_options(made)


def _replace_node(options: argparse.Namespace) -> int:
    disk, say, new = LocalDisk(), Progress().say, None
    with local_cluster.exclusive_lock(options.dir, disk):
        cluster = _found(options.dir)
        (node,) = _chosen(cluster, options.node)
        login = _required_login(cluster, options)
        if cluster_growing.is_to_be_replaced(cluster, login, node):
            cluster, (new,) = cluster_growing.admit(cluster, login, 1, options.base_port, disk)
            failures = local_cluster.start(cluster, [new], options.log_level, options.timeout, say)
            if failures:
                return _failed("replace-node", failures)
    cluster_growing.replace(cluster, login, node, new, say)
    return _end_removed("replace-node", cluster, node, say)


def _required_login(cluster: LocalCluster, options: argparse.Namespace) -> Login:
    login = login_of(cluster, options)
    if login is None:
        raise UserMistake("the cluster has users: log in as an administrator, --user NAME with SAROS_PASSWORD")
    return login


# ---------------------------------------------------------------------------------------------- shared helpers


def _directory_option(made: argparse.ArgumentParser) -> None:
    made.add_argument("--dir", default=_DIRECTORY, help=f"folder of the cluster (default {_DIRECTORY})")


def _start_options(made: argparse.ArgumentParser) -> None:
    made.add_argument("--log-level", choices=LOG_LEVELS, help="default: that of the node's saros.toml, or INFO")
    made.add_argument(
        "--timeout",
        type=float,
        default=_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help=f"time to wait for processes and leaders (default {_TIMEOUT_SECONDS:.0f})",
    )


def _found(directory: str) -> LocalCluster:
    cluster = local_cluster.find(directory, LocalDisk())
    if cluster is None:
        raise UserMistake(f"there is no cluster in {directory}; create one with saros cluster up --dir {directory}")
    return cluster


def _chosen(cluster: LocalCluster, node: int | None) -> list[NodeId]:
    if node is None:
        return cluster.nodes
    if node not in cluster.nodes:
        raise UserMistake(f"there is no node {node}; the nodes are {', '.join(map(str, cluster.nodes))}")
    return [NodeId(node)]


class Progress:
    """Prints progress messages on standard error, except a message that repeats the previous one."""

    def __init__(self) -> None:
        self._last = ""

    def say(self, text: str) -> None:
        """Print a message unless it repeats the previous one."""
        if text != self._last:
            sys.stderr.write(_wrapped(text) + "\n")
            sys.stderr.flush()
            self._last = text


def _wrapped(text: str) -> str:
    """Return a line, broken between words to fit the terminal."""
    if not sys.stderr.isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns, subsequent_indent="    ", break_long_words=False)


COMMANDS = {
    "up": SubCommand(
        "create a cluster on this machine, or start its stopped nodes",
        _up_options,
        _up,
        "started nodes keep running: see saros cluster status; stop them with saros cluster down",
    ),
    "status": SubCommand("show nodes and groups", _status_options, _status, "nothing was changed"),
    "start": SubCommand(
        "start one node",
        _start_node_options,
        _start_node,
        "the node keeps starting: see saros cluster status",
    ),
    "down": SubCommand("stop all nodes, or one", _down_options, _down, "nodes that were told to stop still stop"),
    "secure": SubCommand(
        "give a cluster on this machine an administrator: from then on, clients log in",
        _secure_options,
        _secure,
        "run it again to resume",
    ),
    "add-node": SubCommand(
        "add nodes on this machine",
        _add_options,
        _add_nodes,
        "a change that has begun continues: see saros cluster status --watch; if none has begun, run this again",
    ),
    "remove-node": SubCommand(
        "remove a node, then stop it",
        _remove_options,
        _remove_node,
        "a change that has begun continues; run this again to stop the node",
    ),
    "replace-node": SubCommand(
        "replace a node, even a lost one, then stop it",
        _replace_options,
        _replace_node,
        "a change that has begun continues; run this again to stop the node",
    ),
    "init": SubCommand(
        "write the cluster.json of one node of a cluster",
        hosts.init_options,
        hosts.init,
        "nothing was changed",
    ),
    "certificates": SubCommand(
        "create certificates for the nodes of a cluster",
        hosts.certificates_options,
        hosts.certificates,
        "created files are kept; run this again",
    ),
    "join": SubCommand(
        "add a node on this machine to a cluster of several",
        hosts.join_options,
        hosts.join,
        "steps that have begun continue; run this again to resume",
    ),
}
