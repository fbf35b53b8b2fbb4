"""IoTDB's own clients with TLS: each checks the server's certificate against a configured authority."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from self_signed import self_signed
from system.test_stock_clients import PASSWORD, USER, java_steps, lines_of, packages_of, serve

pytestmark = pytest.mark.slow

STORE_PASSWORD = "the-password-of-the-store"

PYTHON = """
import logging, sys

from iotdb.Session import Session
from iotdb.SessionPool import PoolConfig, SessionPool

logging.disable(logging.CRITICAL)
port, user, password, ca = sys.argv[1:]


def step(name, run):
    try:
        print(name, "|", run())
    except Exception as error:
        print(name, "|", "TLS only" if "this port takes TLS only" in str(error) else "fails")


def session(host="127.0.0.1", **options):
    opened = Session(host, port, user, password, zone_id="UTC", **options)
    opened.open()
    opened.insert_str_record("root.tls.py", 1, ["s"], ["session"])
    found = opened.execute_query_statement("select s from root.tls.py").next()
    opened.close()
    return found.get_fields()[0]


def pool():
    config = PoolConfig(
        node_urls=["127.0.0.1:" + port], user_name=user, password=password, time_zone="UTC", use_ssl=True, ca_certs=ca
    )
    made = SessionPool(config, 1, 3000)
    taken = made.get_session()
    found = taken.execute_query_statement("select s from root.tls.py").next().get_fields()[0]
    made.put_back(taken)
    made.close()
    return found


def dbapi():
    from iotdb.dbapi import connect

    connection = connect("127.0.0.1", port, user, password, zone_id="UTC", use_ssl=True, ca_certs=ca)
    cursor = connection.cursor()
    cursor.execute("select s from root.tls.py")
    found = cursor.fetchall()
    connection.close()
    return found


step("session", lambda: session(use_ssl=True, ca_certs=ca))
step("pool", pool)
step("db-api", dbapi)
step("another name than the certificate's", lambda: session("127.1", use_ssl=True, ca_certs=ca))
step("without TLS", session)
"""


@dataclass
class Server:
    """A server with TLS, and its certificate as PEM and as Java's trust store."""

    port: int
    certificate: Path
    trust_store: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("stock-tls")
    key, certificate = self_signed(folder)
    with serve(folder, "--tls-certificate", str(certificate), "--tls-key", str(key)) as port:
        yield Server(port, certificate, folder / "trust.jks")


def python_steps(version: str, server: Server) -> dict[str, str]:
    command = (sys.executable, "-W", "ignore", "-c", PYTHON, str(server.port), USER, PASSWORD, str(server.certificate))
    return dict(line.split(" | ", 1) for line in lines_of(command, PYTHONPATH=packages_of(version)))


def test_python(server: Server) -> None:
    assert python_steps("2.0.11", server) == {
        "session": "session",
        "pool": "session",
        "db-api": "[[1, 'session']]",
        "another name than the certificate's": "fails",
        "without TLS": "TLS only",
    }


def test_python_1_3_has_tls_for_sessions(server: Server) -> None:
    assert python_steps("1.3.4", server) == {
        "session": "session",
        "pool": "session",
        "db-api": "fails",
        "another name than the certificate's": "fails",
        "without TLS": "TLS only",
    }


@pytest.mark.parametrize("version", ["1.3.2", "2.0.5"])
def test_java(version: str, server: Server) -> None:
    """Java's clients do not compare the host with the names in the certificate."""
    if not server.trust_store.exists():
        imported = ("-importcert", "-noprompt", "-alias", "saros", "-file", str(server.certificate))
        store = ("-keystore", str(server.trust_store), "-storepass", STORE_PASSWORD, "-storetype", "JKS")
        try:
            subprocess.run(("keytool", *imported, *store), check=True, capture_output=True, timeout=60)
        except FileNotFoundError:
            pytest.skip("there is no keytool")
    assert java_steps(version, "TlsClient", server.port, str(server.trust_store), STORE_PASSWORD) == {
        "pool": "true",
        "pool, another name than the certificate's": "true",
        "session": "1 pool",
        "jdbc": "pool",
        "pool without TLS": "fails",
        "jdbc without TLS": "TLS only",
    }
