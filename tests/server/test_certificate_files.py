from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.handshake import Identity
from saros_server.config.configuration import ConfigurationError
from saros_server.pki.certificate_files import Validity, WatchedFiles, validity_of
from saros_server.pki.certificate_making import make_certificates

CLUSTER = "123e4567-e89b-12d3-a456-426614174000"
ONE = NodeId(1)
NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def made_in(folder: Path) -> list[str]:
    make_certificates(str(folder), CLUSTER, {ONE: "a", NodeId(2): "b"})
    return [str(folder / name) for name in ("ca.pem", "node1.pem", "node1.key")]


def test_what_does_not_fit_together_is_named(tmp_path: Path) -> None:
    ca, certificate, key = made_in(tmp_path)
    other = str(tmp_path / "node2.key")
    with_password = str(tmp_path / "locked.key")
    locked = serialization.BestAvailableEncryption(b"secret")
    found = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    Path(with_password).write_bytes(found.private_bytes(*form, locked))
    Path(with_password).chmod(0o600)
    broken = str(tmp_path / "broken.pem")
    Path(broken).write_bytes(Path(ca).read_bytes()[:200] + b"\n-----END CERTIFICATE-----\n")
    for paths, said in (
        ([certificate, other], f"{other} is not the key of the certificate {certificate}"),
        ([certificate, certificate], f"{certificate} holds no key in PEM form"),
        ([key, key], f"{key} holds no certificate in PEM form"),
        ([key, certificate, key], f"{key} holds no certificate in PEM form"),
        (
            [certificate, with_password],
            f"{certificate} and its key {with_password} cannot be read: the key has a password",
        ),
        ([broken, certificate, key], f"{broken} cannot be read: "),
        ([ca, certificate, str(tmp_path / "none")], f"cannot read {tmp_path}/none: No such file or directory"),
    ):
        with pytest.raises(ConfigurationError) as raised:
            WatchedFiles(paths)
        assert said in str(raised.value)


def test_another_nodes_certificate_is_named(tmp_path: Path) -> None:
    paths = made_in(tmp_path)
    WatchedFiles(paths, Identity(CLUSTER, ONE).uri)
    with pytest.raises(ConfigurationError, match=f"node1.pem is another node's certificate: .*{CLUSTER}/node/2"):
        WatchedFiles(paths, Identity(CLUSTER, NodeId(2)).uri)


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
    assert not files.reload_if_changed()
    assert not files.reload_if_changed()
    assert before == files.contents
    said = f"{paths[-1]} is not the key of the certificate {paths[-2]}"
    assert [f"a certificate was refused: {said}"] == files.problems(now)
    (tmp_path / "out" / "node2.pem").replace(paths[-2])
    assert files.reload_if_changed()
    assert [Path(path).read_bytes() for path in paths] == files.contents
    assert [] == files.problems(now)
    assert ["a changed certificate cannot be read", "a new certificate"] == [r.getMessage() for r in caplog.records]


def test_certificates_are_good_while_all_of_them_are(tmp_path: Path) -> None:
    *certificates, _ = made_in(tmp_path)
    authority, node = (Path(path).read_bytes() for path in certificates)
    now = datetime.now(UTC)
    for pem, days in ((authority, 3_650), (node, 825), (authority + node, 825)):
        found = validity_of(pem)
        assert abs(found.begin - now) < timedelta(minutes=1)
        assert abs(found.end - now - timedelta(days=days)) < timedelta(minutes=1)


def test_a_certificate_is_to_be_renewed_a_month_before_it_expires() -> None:
    validity = Validity(NOON, NOON + timedelta(days=100))
    for days, said in (
        (-1, "c.pem is not valid before 2026-11-23 12:00 UTC: check the clock of this machine"),
        (0, None),
        (69, None),
        (71, "the certificate c.pem expires on 2027-03-03 12:00 UTC: renew it"),
        (100, "the certificate c.pem has expired on 2027-03-03 12:00 UTC: renew it"),
    ):
        assert said == validity.problem("c.pem", NOON + timedelta(days=days))
