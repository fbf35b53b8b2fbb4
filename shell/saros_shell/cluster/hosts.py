"""`saros cluster init`, `certificates`, `join`: a cluster on several machines, with one node on each.

    init          write the cluster.json of one of the first nodes into its folder
    certificates  create the certificates that the nodes use among themselves
    join          add a folder on this machine as a node to a running cluster:
                  ADMIT NODE -> cluster.json -> certificates, by hand -> process -> ADD NODE -> wait

`join` may be repeated at any time: it skips the steps that are done. To admit the node, `join` logs in as an
administrator. Private keys are never transferred. Single-threaded.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import sys
import time
import uuid
from collections.abc import Callable

import saros
from saros_cluster.node.cluster_file import (
    CLUSTER_FILE,
    Administrator,
    ClusterFile,
    NodeAddress,
    decode,
    is_address,
    is_uuid,
    load,
    save,
)
from saros_cluster.placement.members import META_VOTERS, META_VOTERS_DEFAULT
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_cluster.topology.transitions import NO_SUCH_NODE
from saros_server.auth.security import FIRST_USER, check_hash, read_password
from saros_server.config.configuration import configuration_file
from saros_server.config.configuration import load as load_configuration
from saros_server.pki.certificate_making import make_certificates
from saros_server.pki.peer_certificates import peer_credentials
from saros_server.process.daemon import is_launched, last_log_line, launch
from saros_server.process.server_file import serving
from saros_shell.cluster.login import connect_to, login_options
from saros_shell.cluster.nodes import rows_of, wait_for_change
from saros_shell.output.cluster_tables import waiting
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.io.disk import LocalDisk
from saros_wire.addresses import host_and_port, is_loopback

_START_SECONDS = 60.0
#: Timeout of the check whether a node uses TLS. It is short, because a node answers at once or not at all.
_ASK_SECONDS = 3.0
_POLL_SECONDS = 0.1


# ---------------------------------------------------------------------------------------------- init


def init_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `init`."""
    made.add_argument("--data", required=True, metavar="FOLDER", help="data folder of the node")
    made.add_argument("--node", type=int, required=True, metavar="K", help="id of the node, from 1")
    made.add_argument("--cluster", metavar="UUID", help="id of the cluster: the same for all its nodes")
    made.add_argument("--replicas", type=int, required=True, metavar="N", help="copies of all data")
    made.add_argument(
        "--nodes",
        required=True,
        metavar="K=HOST:PORT/HOST:PORT[/RACK],...",
        help="all nodes: address for nodes / for clients",
    )
    made.add_argument(
        "--meta-voters",
        type=int,
        choices=META_VOTERS,
        help=f"nodes that vote in the meta group; the same for all nodes (default {META_VOTERS_DEFAULT})",
    )
    made.add_argument("--administrator", default=FIRST_USER, metavar="NAME", help=f"default {FIRST_USER}")
    made.add_argument("--administrator-hash", metavar="HASH", help="password hash, from saros user hash")
    made.add_argument("--administrator-hash-file", metavar="FILE", help="the same, from a file")


def init(options: argparse.Namespace) -> int:
    """Write the cluster.json of one node. Raises UserMistake."""
    if options.cluster is None:
        raise UserMistake(
            f"--cluster is missing: pass the id of the cluster; for a new cluster, pass --cluster {uuid.uuid4()} for"
            " each of its nodes"
        )
    disk = LocalDisk()
    nodes = _parse_nodes(options.nodes)
    found = load(options.data, disk)
    meta_voters = options.meta_voters or (META_VOTERS_DEFAULT if found is None else found.meta_voters)
    file = ClusterFile(
        options.cluster,
        NodeId(options.node),
        options.replicas,
        SLOTS,
        nodes,
        _given_administrator(options),
        meta_voters=meta_voters,
    )
    if found is None and disk.list(options.data):
        raise UserMistake(f"{options.data} is not empty, and has no {CLUSTER_FILE}; choose another folder")
    if found not in (None, file):
        path = os.path.join(options.data, CLUSTER_FILE)
        raise UserMistake(f"{path} already exists with other content; choose another folder")
    if found is None:
        disk.make_folder(options.data)
        save(options.data, file, disk)
    if file.administrator is None and not is_loopback(file.address.client):
        sys.stderr.write(
            f"to listen on {file.address.client}, a node needs an administrator: run saros user hash > hash, then this"
            " command for a new folder with --administrator-hash-file hash; or use saros start --insecure\n"
        )
    sys.stdout.write(f"node {file.node} of cluster {file.cluster}: saros start --data {options.data}\n")
    return 0


def _given_administrator(options: argparse.Namespace) -> Administrator | None:
    phc, path = options.administrator_hash, options.administrator_hash_file
    if phc and path:
        raise UserMistake("pass either --administrator-hash or --administrator-hash-file, not both")
    phc = read_password(path) if path else phc
    if not phc:
        return None
    check_hash(phc)
    return Administrator(options.administrator, phc, must_change=False)


def _parse_nodes(text: str) -> dict[NodeId, NodeAddress]:
    nodes: dict[NodeId, NodeAddress] = {}
    for part in text.split(","):
        key, _, addresses = part.partition("=")
        peer, client, rack = (*addresses.split("/", 2), "", "")[:3]
        if not (key.isascii() and key.isdecimal() and is_address(peer) and is_address(client)):
            raise UserMistake(
                f"--nodes: {part!r} is not of the form 1=host:6668/host:6667 or 1=host:6668/host:6667/rack"
            )
        if NodeId(int(key)) in nodes:
            raise UserMistake(f"--nodes: node {key} is given twice")
        nodes[NodeId(int(key))] = NodeAddress(peer, client, rack)
    return nodes


# ---------------------------------------------------------------------------------------------- certificates


def certificates_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `certificates`."""
    made.add_argument("--dir", required=True, metavar="OUT", help="output folder; existing files are kept")
    made.add_argument("--cluster", required=True, metavar="UUID", help="id of the cluster")
    made.add_argument("--nodes", required=True, metavar="K=HOST,...", help="all nodes, with their hosts")


def certificates(options: argparse.Namespace) -> int:
    """Create each certificate that does not exist yet. Raises UserMistake."""
    if not is_uuid(options.cluster):
        raise UserMistake(f"--cluster: {options.cluster!r} is not a UUID")
    hosts: dict[NodeId, str] = {}
    for part in options.nodes.split(","):
        key, _, host = part.partition("=")
        if not (key.isascii() and key.isdecimal() and int(key) and host) or NodeId(int(key)) in hosts:
            raise UserMistake(f"--nodes: {part!r} is not of the form 1=host, with a different number for each node")
        hosts[NodeId(int(key))] = host
    made = make_certificates(options.dir, options.cluster, hosts)
    if not made:
        sys.stdout.write("all certificates exist already; to renew one, delete it and run this again\n")
        return 0
    sys.stdout.write(
        f"created {', '.join(made)}\n"
        "copy ca.pem, nodeK.pem and nodeK.key to node K, and set them in the saros.toml of its data folder:\n"
        '    peer_ca = "/etc/saros/ca.pem"\n'
        '    peer_certificate = "/etc/saros/nodeK.pem"\n'
        '    peer_key = "/etc/saros/nodeK.key"\n'
        "for clients, set tls_certificate and tls_key to the same two files, or others\n"
        f"keep {options.dir}/ca.key off the nodes: it signs new certificates\n"
    )
    return 0


# ---------------------------------------------------------------------------------------------- join


def join_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `join`."""
    made.add_argument("--data", required=True, metavar="FOLDER", help="data folder of the node, on this machine")
    made.add_argument("--to", required=True, metavar="TARGET", help="saros://host:port of nodes of the cluster")
    made.add_argument("--peer", required=True, metavar="HOST:PORT", help="address of this node for other nodes")
    made.add_argument("--client", required=True, metavar="HOST:PORT", help="address of this node for clients")
    made.add_argument("--replace", type=int, metavar="K", help="replace node K, which may be permanently lost")
    made.add_argument("--rack", metavar="NAME", help="rack; replicas go to different racks")
    login_options(made, "administrator; password from SAROS_PASSWORD or a prompt")


def join(options: argparse.Namespace) -> int:
    """Take the steps of joining that are possible now. Return 1 if the user must act before the remaining steps."""
    with connect_to(options.to, options) as connection:
        if options.replace is not None:
            _check_node_exists(connection, options)
        file = _admitted(connection, options)
        if not _may_start(options.data, file):
            return 1
        _start(options.data)
        return _join(connection, file.node, options.replace)


def _check_node_exists(connection: saros.Connection, options: argparse.Namespace) -> None:
    """Raise UserMistake if the node to replace does not exist, unless this call repeats an earlier call."""
    nodes = [str(row["NodeID"]) for row in rows_of(connection, "show cluster")]
    if str(options.replace) not in nodes and load(options.data, LocalDisk()) is None:
        raise UserMistake(
            f"--replace: there is no node {options.replace}; the nodes are {', '.join(nodes)}", code=NO_SUCH_NODE
        )


def _admitted(connection: saros.Connection, options: argparse.Namespace) -> ClusterFile:
    """Return the folder's cluster.json. If it does not exist, admit the node and write the file. Raises UserMistake."""
    disk = LocalDisk()
    found = load(options.data, disk)
    if found is None:
        if any(name != "saros.toml" for name in disk.list(options.data)):
            raise UserMistake(f"{options.data} is not empty, and has no {CLUSTER_FILE}; choose another folder")
        rack = f" rack '{options.rack}'" if options.rack else ""
        statement = f"admit node '{options.peer}' client '{options.client}'{rack}"
        (row,) = rows_of(connection, f"{statement} as '{options.peer} {options.client}'")
        found = decode(str(row["ClusterFile"]).encode())
        disk.make_folder(options.data)
        save(options.data, found, disk)
    if (found.address.peer, found.address.client) != (options.peer, options.client):
        raise UserMistake(
            f"{options.data} belongs to node {found.node} at {found.address.peer}, {found.address.client}; pass these"
            " addresses with --peer and --client, or choose another folder"
        )
    return found


def _may_start(folder: str, file: ClusterFile) -> bool:
    """Return whether the node has the certificates that it needs. If not, print the next steps. Raises UserMistake."""
    credentials = peer_credentials(load_configuration(file=configuration_file(folder)).values, SystemClock(), file)
    answers = (_speaks_tls(address.peer) for address in file.nodes.values())
    with_tls = next((answer for answer in answers if answer is not None), None)
    if credentials is not None and with_tls is False:
        raise UserMistake(
            f"the other nodes of the cluster use no certificates; remove peer_ca, peer_certificate and peer_key from"
            f" {os.path.join(folder, 'saros.toml')}, or configure certificates on all nodes"
        )
    if credentials is not None or (is_loopback(file.address.peer) and not with_tls):
        return True
    host = file.address.peer.rpartition(":")[0]
    sys.stdout.write(
        f"node {file.node} is admitted, but needs a certificate before it starts; on the machine with ca.key, run\n"
        f"    saros cluster certificates --dir OUT --cluster {file.cluster} --nodes {file.node}={host}\n"
        f"then copy ca.pem, node{file.node}.pem and node{file.node}.key to this machine, set them in"
        f" {os.path.join(folder, 'saros.toml')}\n"
        "(peer_ca, peer_certificate, peer_key, and for clients tls_certificate, tls_key), and run this command again\n"
    )
    return False


def _speaks_tls(address: str) -> bool | None:
    """Return whether the server at `address` uses TLS, or None if it does not answer.

    This function does not check the server's certificate. The new node checks it later, when it connects.
    """
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    asking.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(host_and_port(address), _ASK_SECONDS) as line, asking.wrap_socket(line):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # for example, the alert that a client certificate is required
    except ConnectionResetError:
        return False
    except OSError:
        return None


def _start(folder: str) -> None:
    """Start the node if it is not running yet, and wait until it serves clients. Raises UserMistake."""
    if serving(folder) is None and not is_launched(folder):
        launch(folder, ["--data", folder])
    limit = time.monotonic() + _START_SECONDS
    _say("starting the node")
    while serving(folder) is None:
        if not is_launched(folder) or time.monotonic() > limit:
            raise UserMistake(f"the node did not come up: {last_log_line(folder)}")
        time.sleep(_POLL_SECONDS)


def _join(connection: saros.Connection, node: NodeId, replaced: int | None) -> int:
    rows = [row for row in rows_of(connection, "show cluster") if row["NodeID"] == node]
    change = rows_of(connection, "show cluster change")
    if waiting(rows) and not any(str(node) in str(row["Joining"]).split(", ") for row in change):
        connection.execute(f"add node {node}" if replaced is None else f"replace node {replaced} with {node}")
    wait_for_change(connection, _say_changes())
    rows = rows_of(connection, "show cluster")
    own = [row for row in rows if row["NodeID"] == node]
    if not own or waiting(own):
        raise UserMistake(f"node {node} has not joined: the change was aborted; run this command again")
    if replaced in [row["NodeID"] for row in rows]:
        raise UserMistake(f"node {node} has joined, but node {replaced} has not left; remove it with REMOVE NODE")
    taken = "" if replaced is None else f", in place of node {replaced}; stop that node and delete its folder"
    sys.stdout.write(f"node {node} is in the cluster{taken}\n")
    return 0


def _say_changes() -> Callable[[str], None]:
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:
            _say(text)
            last = text

    return say


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
