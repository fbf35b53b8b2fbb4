from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.handshake import Identity
from saros_server.certificate_files import WatchedFiles
from saros_server.certificate_validity import Validity, validity_of
from saros_server.configuration import ConfigurationError
from saros_server.peer_certificates import make_certificates

CLUSTER = "123e4567-e89b-12d3-a456-426614174000"
ONE = NodeId(1)
NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")


def made_in(folder: Path) -> list[str]:
    make_certificates(str(folder), CLUSTER, {ONE: "a", NodeId(2): "b"})
    return [str(folder / name) for name in ("ca.pem", "node1.pem", "node1.key")]


@needs_openssl
def test_what_does_not_fit_together_is_named(tmp_path: Path) -> None:
    ca, certificate, key = made_in(tmp_path)
    other = str(tmp_path / "node2.key")
    with_password = str(tmp_path / "locked.key")
    words = ["openssl", "ec", "-in", key, "-aes128", "-passout", "pass:secret", "-out", with_password]
    subprocess.run(words, check=True, capture_output=True)
    for paths, said in (
        ([certificate, other], f"{other} is not the key of the certificate {certificate}"),
        ([certificate, certificate], f"{certificate} holds no key in PEM form"),
        ([key, key], f"{key} holds no certificate in PEM form"),
        ([key, certificate, key], f"{key} holds no certificate in PEM form"),
        (
            [certificate, with_password],
            f"{certificate} and its key {with_password} cannot be read: the key has a password",
        ),
        ([ca, certificate, str(tmp_path / "none")], f"cannot read {tmp_path}/none: No such file or directory"),
    ):
        with pytest.raises(ConfigurationError) as raised:
            WatchedFiles(paths)
        assert str(raised.value).endswith(said)


@needs_openssl
def test_another_nodes_certificate_is_named(tmp_path: Path) -> None:
    paths = made_in(tmp_path)
    WatchedFiles(paths, Identity(CLUSTER, ONE).uri)
    with pytest.raises(ConfigurationError, match=f"node1.pem is another node's certificate: .*{CLUSTER}/node/2"):
        WatchedFiles(paths, Identity(CLUSTER, NodeId(2)).uri)


@needs_openssl
def test_new_files_are_taken_when_they_fit_and_what_is_wrong_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = made_in(tmp_path / "out")
    caplog.set_level("INFO")
    files = WatchedFiles(paths)
    before = files.contents
    now = datetime.now(UTC)
    assert [] == files.problems(now)
    (tmp_path / "out" / "node2.key").replace(paths[-1])
    assert not files.look()
    assert not files.look()
    assert before == files.contents
    said = f"{paths[-1]} is not the key of the certificate {paths[-2]}"
    assert [f"a certificate is not taken: {said}"] == files.problems(now)
    (tmp_path / "out" / "node2.pem").replace(paths[-2])
    assert files.look()
    assert [Path(path).read_bytes() for path in paths] == files.contents
    assert [] == files.problems(now)
    assert ["a certificate cannot be read anew", "a new certificate"] == [r.getMessage() for r in caplog.records]


@needs_openssl
def test_the_times_of_a_certificate_are_those_that_openssl_reads(tmp_path: Path) -> None:
    *certificates, _ = made_in(tmp_path)
    for path in certificates:
        words = ["openssl", "x509", "-in", path, "-noout", "-dates"]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        begin, end = (
            datetime.strptime(line.partition("=")[2], "%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
            for line in told.splitlines()
        )
        assert Validity(begin, end) == validity_of(Path(path).read_bytes())
    both = b"".join(Path(path).read_bytes() for path in certificates)
    assert validity_of(Path(certificates[1]).read_bytes()) == validity_of(both)


def test_a_certificate_is_to_be_renewed_a_month_before_it_expires() -> None:
    validity = Validity(NOON, NOON + timedelta(days=100))
    for days, said in (
        (-1, "c.pem is a certificate from 2026-11-23 12:00 UTC on: is the clock of this machine right?"),
        (0, None),
        (69, None),
        (71, "the certificate c.pem expires on 2027-03-03 12:00 UTC: renew it"),
        (100, "the certificate c.pem has expired on 2027-03-03 12:00 UTC: renew it"),
    ):
        assert said == validity.problem("c.pem", NOON + timedelta(days=days))
