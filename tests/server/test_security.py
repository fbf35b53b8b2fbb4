"""Logins, sessions, TLS and start-up: access control, the audit trail, and the protection of secrets."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from self_signed import self_signed
from server.frame_client import FrameClient, Refused
from server.secured import ANN, CHEAP, ROOT, SECOND, SESSION_CALLS, Secured
from storage.crash_disk import CrashDisk
from waiting import PATIENCE_S

import saros
from saros.base.target import parse_target
from saros.transport.remote_calls import connection_hint
from saros.transport.sync_client import RemoteReceiver
from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.auth import audit
from saros_server.auth.audit import AuditLog, verify
from saros_server.auth.lockout import FAILURES_MAX, KEYS_MAX, LOCK_NS, PAUSE_FIRST_NS, PAUSE_LONGEST_NS, Lockout
from saros_server.auth.passwords import (
    Cost,
    check_password,
    dummy_hash,
    hash_password,
    is_outdated,
    one_time_password,
    verify_password,
)
from saros_server.auth.security import Security, check_host, set_administrator
from saros_server.config.configuration import ConfigurationError
from saros_server.pki.certificate_files import CertificateFiles
from saros_server.process.server_file import serving
from saros_server.server import Server
from saros_shell.commands import audit as audit_command
from saros_shell.commands import shell as shell_command
from saros_shell.commands import user as user_command
from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.io.disk import LocalDisk
from saros_sync.round import Content
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

SAROS = str(Path(sys.executable).with_name("saros"))


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    made = Secured(tmp_path / "data")
    yield made
    made.server.stop()


def test_a_sender_with_a_wrong_password_is_told_so_each_time(secured: Secured) -> None:
    receiver = RemoteReceiver(parse_target(f"saros://ann:another-password@{secured.server.address}"))
    for _ in range(2):
        with pytest.raises(StorageError) as refused:
            receiver.begin("a sender", "edge", 1, Content("0" * 64, 0))
        assert 801 == refused.value.code


#: Parts of the messages with which calls refuse an empty request in a session with all privileges.
EMPTY = {
    Call.READ_CHECKPOINT: "the capture does not exist",
    Call.UPLOAD: "is not a valid name of a job",
    Call.DISCARD_UPLOADS: "is not a valid name of a job",
    Call.SYNC_BEGIN: "is not a sender id",
    Call.SYNC_CHUNK: "is not a sender id",
    Call.SYNC_COMMIT: "is not a sender id",
    Call.INSERT_ROWS: "rows of 0 devices",
    Call.WRITE_LINES: "the name of the database is missing",
}


@pytest.mark.parametrize("call", SESSION_CALLS)
def test_the_same_call_with_a_good_session_is_carried_out(secured: Secured, call: Call) -> None:
    token = secured.open("root", ROOT)
    if call in EMPTY:
        with pytest.raises(Refused, match=EMPTY[call]):
            secured.try_call(call, token)
    else:
        secured.try_call(call, token)
    expected = ["root.proof"] if call in (Call.EXECUTE, Call.INSERT) else []
    assert expected == secured.server.api.node.store.schema.databases()


@pytest.mark.parametrize("call", [Call.EXECUTE, Call.INSERT, Call.SYNC_BEGIN, Call.SYNC_CHUNK, Call.SYNC_COMMIT])
def test_the_same_call_of_a_user_who_may_not_is_denied(secured: Secured, call: Call) -> None:
    with pytest.raises(Refused, match="803: No permission"):
        secured.try_call(call, secured.open("ann", ANN))
    assert [] == secured.server.api.node.store.schema.databases()
    assert ("denied", "ann") == (secured.trail()[-1]["event"], secured.trail()[-1]["user"])


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("", ""),
        ("root", ""),
        ("root", "wrong"),
        ("root", ANN),
        ("nobody", ROOT),
        ("ROOT", ROOT),
        ("root", ROOT + " "),
        ("", ROOT),
    ],
)
def test_nobody_gets_in_with_a_wrong_password_or_name(secured: Secured, user: str, password: str) -> None:
    with pytest.raises(Refused, match="801: wrong user or password"):
        secured.open(user, password)
    assert (801, user) == (secured.trail()[-1]["code"], secured.trail()[-1]["user"])


def test_a_name_of_any_length_is_no_user(secured: Secured) -> None:
    with pytest.raises(Refused, match="wrong user"):
        secured.open("x" * 1_000_000, "y" * 1_000_000)
    assert 65 == len(str(secured.trail()[-1]["user"]))


def test_ping_needs_no_session(secured: Secured) -> None:
    assert client_pb2.PingReply.FromString(secured.call(Call.PING)).server


def test_a_folder_with_users_is_never_open(tmp_path: Path) -> None:
    made = Secured(tmp_path / "data", Security(authentication=False))
    try:
        with pytest.raises(saros.OperationalError) as caught:
            saros.connect(f"saros://{made.server.address}")
        assert 801 == caught.value.code
    finally:
        made.server.stop()


def test_sessions_take_rights_with_the_next_call_and_lose_them(secured: Secured) -> None:
    with secured.connect("root", ROOT) as root, secured.connect("ann", ANN) as ann:
        root.execute("insert into root.a.d(time, s, t) values (1, 1.0, 2.0)")
        assert [] == ann.execute("select * from root.**").fetchall()
        root.execute("grant read_data on root.a.d.s to user ann")
        assert [(1, 1.0)] == ann.execute("select * from root.**").fetchall()
        with pytest.raises(saros.ProgrammingError):
            ann.insert("root.a.d", [1], {"s": [1.0]})
        root.execute("create role writers")
        root.execute("grant write_data on root.a.** to role writers")
        root.execute("grant role writers to ann")
        assert 1 == ann.insert("root.a.d", [2], {"s": [1.0]})
        root.execute("drop role writers")
        with pytest.raises(saros.ProgrammingError):
            ann.insert("root.a.d", [2], {"s": [1.0]})
        root.execute("revoke read_data on root.** from user ann")
        assert [] == ann.execute("select * from root.**").fetchall()


def test_setting_a_password_ends_the_sessions(secured: Secured) -> None:
    token = secured.open("ann", ANN)
    statement = "alter user ann set password 'another-long-secret'"
    secured.call(Call.EXECUTE, client_pb2.ExecuteRequest(statement=statement), token)
    with pytest.raises(Refused, match="no such session"):
        secured.call(Call.CLOSE, token=token)
    with pytest.raises(Refused, match="wrong user"):
        secured.open("ann", ANN)
    secured.clock.ns += 15 * SECOND
    secured.open("ann", "another-long-secret")


def test_a_password_may_be_a_parameter_and_must_be_good(secured: Secured) -> None:
    with secured.connect("root", ROOT) as root:
        root.execute("create user bob ?", ["a-secret-of-bob"])
        for weak in ("short", "x" * 1_025):
            with pytest.raises(saros.DataError) as caught:
                root.execute("create user eve ?", [weak])
            assert 2041 == caught.value.code
    secured.connect("bob", "a-secret-of-bob").close()


def test_an_older_hash_is_made_anew_at_login(secured: Secured) -> None:
    older = hash_password(ANN, Cost(4))
    secured.directory.change(CreateUser("old", older))
    token = secured.open("old", ANN)
    now = secured.directory.users().user("old").hash
    assert older != now
    assert not is_outdated(now, CHEAP)
    secured.call(Call.CLOSE, token=token)
    secured.open("old", ANN)


# ---------------------------------------------------------------------------------------------- brute force


def test_failures_make_longer_pauses_and_then_a_lock() -> None:
    lockout, now, pauses = Lockout(), 0, []
    for _ in range(FAILURES_MAX):
        assert 0 == lockout.begin("k", now)
        lockout.end("k", now, right=False)
        pauses.append(lockout.begin("k", now))
        now += pauses[-1]
    expected = [min(PAUSE_FIRST_NS << n, PAUSE_LONGEST_NS) for n in range(FAILURES_MAX - 1)]
    assert [*expected, LOCK_NS] == pauses
    assert 0 == lockout.begin("k", now)
    lockout.end("k", now, right=True)
    assert 0 == lockout.begin("k", now)
    lockout.end("k", now, right=False)
    assert PAUSE_FIRST_NS == lockout.begin("k", now)


def test_others_are_not_locked_out() -> None:
    lockout = Lockout()
    lockout.begin("here ann", 0)
    lockout.end("here ann", 0, right=False)
    assert 0 < lockout.begin("here ann", 0)
    assert 0 == lockout.begin("there ann", 0) == lockout.begin("here bob", 0)


def test_attempts_at_once_are_no_way_around() -> None:
    lockout = Lockout()
    begun = [lockout.begin("k", 0) for _ in range(100)]
    assert FAILURES_MAX == begun.count(0)
    for _ in range(FAILURES_MAX):
        lockout.end("k", 0, right=False)
    assert LOCK_NS == lockout.begin("k", 0)


def test_guessing_names_does_not_fill_the_memory() -> None:
    lockout = Lockout()
    for number in range(3 * KEYS_MAX):
        lockout.begin(f"{number}", number)
        lockout.end(f"{number}", number, right=False)
    assert len(lockout._attempts) <= KEYS_MAX


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, LOCK_NS)), max_size=60))
def test_no_more_than_so_many_wrong_attempts_between_locks(steps: list[tuple[int, bool, int]]) -> None:
    lockout, now, wrong = Lockout(), 0, {0: 0, 1: 0, 2: 0}
    for key, right, pause in steps:
        now += pause
        wait = lockout.begin(str(key), now)
        if wait == 0:
            lockout.end(str(key), now, right=right)
            wrong[key] = 0 if right else wrong[key] % FAILURES_MAX + 1
        else:
            assert wrong[key] > 0
            assert wait <= LOCK_NS
            assert wait <= PAUSE_LONGEST_NS or wrong[key] == FAILURES_MAX


def test_a_thousand_wrong_logins_are_few_that_are_looked_at(secured: Secured) -> None:
    looked_at = 0
    for number in range(1_000):
        secured.clock.ns += SECOND // 10
        with pytest.raises(Exception, match=r"wrong user|too many") as caught:
            secured.server.api._services.gate.enter("ann", f"wrong {number}", "ipv4:192.0.2.7")
        looked_at += "wrong user" in str(caught.value)
    assert looked_at <= FAILURES_MAX
    secured.open("ann", ANN)
    with pytest.raises(Exception, match="too many attempts failed: try again in"):
        secured.server.api._services.gate.enter("ann", ANN, "ipv4:192.0.2.7")
    secured.clock.ns += LOCK_NS
    assert "ann" == secured.server.api._services.gate.enter("ann", ANN, "ipv4:192.0.2.7").user


@pytest.mark.speed
def test_an_unknown_user_costs_the_same_time() -> None:
    known, nobody = hash_password(ANN, Cost(13)), dummy_hash(Cost(13))
    times: dict[str, list[float]] = {known: [], nobody: []}
    for _ in range(12):
        for phc, taken in times.items():
            started = time.process_time()
            assert not verify_password("wrong", phc)
            taken.append(time.process_time() - started)
    assert statistics.mean(times[known]) == pytest.approx(statistics.mean(times[nobody]), rel=0.1)


# ---------------------------------------------------------------------------------------------- passwords


def test_a_hash_says_how_it_was_made_and_is_never_twice_the_same() -> None:
    first, second = hash_password(ANN, CHEAP), hash_password(ANN, CHEAP)
    assert first.startswith("$scrypt$ln=10,r=8,p=3$")
    assert first != second
    assert verify_password(ANN, first)
    assert verify_password(ANN, second)
    assert not verify_password(ANN + "x", first)
    assert not verify_password("", dummy_hash(CHEAP))


def test_a_password_is_what_it_looks_like() -> None:
    assert verify_password("pa\u0301ssword \ufb01ne one", hash_password("p\u00e1ssword fine one", CHEAP))


@pytest.mark.parametrize(
    "phc", ["", "plain", "$scrypt$ln=30,r=8,p=1$AAAA$AAAA", "$scrypt$ln=10,r=0,p=1$AAAA$AAAA", "$md5$x"]
)
def test_what_is_no_hash_lets_nobody_in(phc: str) -> None:
    with pytest.raises(ValueError, match="hash"):
        verify_password("", phc)


@pytest.mark.parametrize("password", ["", "eleven char", "x" * 1_025, "Administrator"])
def test_weak_passwords_are_refused(password: str) -> None:
    with pytest.raises(UserMistake) as caught:
        check_password("administrator", password)
    assert 2041 == caught.value.code
    assert not password or password not in str(caught.value)


def test_good_passwords_are_taken() -> None:
    for password in ("twelve chars", "日本語のパスワードは長い方が", one_time_password()):
        check_password("administrator", password)
    assert one_time_password() != one_time_password()


# ---------------------------------------------------------------------------------------------- TLS


@pytest.fixture
def certificate(tmp_path: Path) -> CertificateFiles:
    return certificate_in(tmp_path)


def certificate_in(tmp_path: Path) -> CertificateFiles:
    key, certificate = self_signed(tmp_path)
    return CertificateFiles(str(certificate), str(key))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # warnings about old TLS versions
def test_with_a_certificate_clients_speak_tls(tmp_path: Path, certificate: CertificateFiles) -> None:
    made = Secured(tmp_path / "data", Security(tls=certificate))
    try:
        target = f"saros://root:{ROOT}@{made.server.address}"
        with saros.connect(f"{target}/?tls={certificate.certificate}") as connection:
            connection.execute("create database root.a")
        with pytest.raises(saros.OperationalError):
            saros.connect(target)
        assert tls_version(made.server.address, certificate, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
        assert tls_version(made.server.address, certificate, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        assert tls_version(made.server.address, certificate, ssl.TLSVersion.TLSv1_1) is None
    finally:
        made.server.stop()


@pytest.mark.parametrize(
    ("host", "query", "said"),
    [
        ("localhost", "", "this port takes TLS only: connect with TLS (docs/security.md); add /?tls=ca.pem"),
        ("localhost", "/?tls={other}", "; {other} has not signed the server's certificate"),
        ("127.0.0.2", "/?tls={own}", "; the server's certificate is for other names: connect to one of them"),
    ],
)
def test_who_cannot_connect_is_told_what_may_be_missing(
    host: str, query: str, said: str, tmp_path: Path, certificate: CertificateFiles
) -> None:
    (tmp_path / "other").mkdir()
    names = {"own": certificate.certificate, "other": certificate_in(tmp_path / "other").certificate}
    made = Secured(tmp_path / "data", Security(tls=certificate, insecure=True), host="0.0.0.0")
    try:
        port = made.server.address.rpartition(":")[2]
        with pytest.raises(saros.OperationalError, match=re.escape(said.format(**names)) + "$"):
            saros.connect(f"saros://root:{ROOT}@{host}:{port}{query.format(**names)}")
    finally:
        made.server.stop()


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (
            "CERTIFICATE_VERIFY_FAILED: certificate has expired: OK",
            "renew it, unless the clock of this machine is wrong",
        ),
        ("CERTIFICATE_VERIFY_FAILED: certificate is not yet valid", "check the clocks of this machine"),
        ("CERTIFICATE_VERIFY_FAILED: unable to get local issuer", "ca.pem has not signed the server's certificate"),
    ],
)
def test_a_certificate_out_of_its_time_is_not_taken_for_a_strangers(said: str, what: str) -> None:
    assert what in connection_hint(parse_target("saros://host/?tls=ca.pem"), 2016, f"failed to connect: {said}")


def test_a_server_without_tls_is_called_so(secured: Secured, certificate: CertificateFiles) -> None:
    with pytest.raises(saros.OperationalError, match=r"the server does not use TLS: connect without tls$"):
        saros.connect(f"saros://{secured.server.address}", tls_ca=certificate.certificate)


def test_who_names_no_user_is_told_so(secured: Secured) -> None:
    with pytest.raises(saros.Error, match=r"wrong user or password: name a user, saros://user:password@host:port$"):
        saros.connect(f"saros://{secured.server.address}")
    with pytest.raises(saros.Error, match=r"wrong user or password$"):
        saros.connect(f"saros://root:wrong-one@{secured.server.address}")


def test_the_shell_takes_the_password_of_a_user_from_elsewhere(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"saros://root@{secured.server.address}"
    monkeypatch.setenv("SAROS_PASSWORD", ROOT)
    assert 0 == shell_command.main([target, "-e", "show databases"])
    monkeypatch.delenv("SAROS_PASSWORD")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", {"password of root: ": ROOT}.__getitem__)
    assert 0 == shell_command.main([target, "-e", "show databases"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert 1 == shell_command.main([target, "-e", "show databases"])
    said = "no password was given; commands take it from SAROS_PASSWORD, or ask for it on a terminal"
    assert f"saros shell: wrong user or password: {said}\n" == capsys.readouterr().err


def test_who_sets_the_own_password_in_the_shell_is_told_to_log_in_anew(
    secured: Secured, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "alter user root set password 'another long one'; show databases"
    assert 1 == shell_command.main([f"saros://root:{ROOT}@{secured.server.address}", "-e", words])
    done, said = capsys.readouterr()
    assert "done\n" == done
    advice = "The session has ended, perhaps because the user's password was changed: leave (\\q) and log in again."
    assert advice in said
    secured.clock.ns += SECOND
    anew = f"saros://root:another%20long%20one@{secured.server.address}"
    assert 0 == shell_command.main([anew, "-e", "show databases"])


def tls_version(address: str, certificate: CertificateFiles, newest: ssl.TLSVersion) -> str | None:
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=certificate.certificate)
    context.set_alpn_protocols(["h2"])
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = newest
    try:
        with (
            socket.create_connection((host, int(port)), timeout=PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            return wrapped.version()
    except (ssl.SSLError, ConnectionError):
        return None


def test_a_token_does_not_serve_over_another_way_in(tmp_path: Path, certificate: CertificateFiles) -> None:
    made = Secured(tmp_path / "data", Security(tls=certificate))
    found = serving(str(made.folder))
    assert found is not None
    assert found.local.startswith("unix-abstract:")
    try:
        trusted = ssl.create_default_context(cafile=certificate.certificate)
        with FrameClient(found.local) as here, FrameClient(made.server.address, tls=trusted) as elsewhere:
            here.open("root", ROOT)
            elsewhere.token = here.token
            with pytest.raises(Refused, match="2014: no such session"):
                elsewhere.call(Call.CLOSE)
            here.call(Call.CLOSE)
        done = subprocess.run([SAROS, "status", "--data", str(made.folder)], capture_output=True, text=True, check=True)
        assert "sessions  0" in done.stdout
    finally:
        made.server.stop()


def test_a_new_certificate_is_taken_without_a_restart(tmp_path: Path, certificate: CertificateFiles) -> None:
    (tmp_path / "new").mkdir()
    new = certificate_in(tmp_path / "new")
    made = Secured(tmp_path / "data", Security(tls=certificate))
    try:
        target = f"saros://root:{ROOT}@{made.server.address}/?tls={tmp_path}/own.pem"
        shutil.copy(certificate.certificate, tmp_path / "own.pem")
        saros.connect(target).close()
        Path(new.key).replace(certificate.key)
        saros.connect(target).close()  # the old certificate stays in use
        assert f"{certificate.key} is not the key" in status_of(made)
        shutil.copy(new.certificate, certificate.certificate)
        with pytest.raises(saros.OperationalError, match="has not signed the server's certificate"):
            saros.connect(target)
        saros.connect(target.replace("own.pem", "new/certificate.pem")).close()
        assert "is not the key" not in status_of(made)
    finally:
        made.server.stop()


def status_of(made: Secured) -> str:
    done = subprocess.run([SAROS, "status", "--data", str(made.folder)], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_certificate_that_does_not_fit_its_key_is_named_when_the_server_starts(
    tmp_path: Path, certificate: CertificateFiles
) -> None:
    (tmp_path / "other").mkdir()
    tls = CertificateFiles(certificate.certificate, certificate_in(tmp_path / "other").key)
    with pytest.raises(ConfigurationError, match=r"other/key.pem is not the key of the certificate"):
        Server(str(tmp_path / "data"), "127.0.0.1", 0, security=Security(tls=tls))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path, certificate: CertificateFiles) -> None:
    Path(certificate.key).chmod(0o640)
    with pytest.raises(ConfigurationError, match="other users can read the key"):
        Server(str(tmp_path / "data"), "127.0.0.1", 0, security=Security(tls=certificate))
    saros.connect(str(tmp_path / "data")).close()


# ---------------------------------------------------------------------------------------------- starting


def test_other_addresses_need_authentication_and_tls() -> None:
    tls = CertificateFiles("c", "k")
    for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"):
        check_host(host, Security())
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        for security, authenticated in ((Security(), True), (Security(tls=tls), False), (Security(), False)):
            with pytest.raises(ConfigurationError, match="other machines"):
                check_host(host, security, authenticated=authenticated)
        check_host(host, Security(tls=tls), authenticated=True)
        check_host(host, Security(insecure=True))
        with pytest.raises(
            ConfigurationError, match=r"no administrator in cluster.json .* and no TLS \(tls_certificate"
        ):
            check_host(host, clustered=True)


def test_a_folder_that_anybody_may_write_in_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ConfigurationError, match="chmod o-w"):
        Server(str(folder), "127.0.0.1", 0)


def test_users_that_cannot_be_read_do_not_open_the_server(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "users").write_bytes(b"junk")
    with pytest.raises(CorruptFile):
        Server(str(tmp_path), "127.0.0.1", 0)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SAROS, *words], capture_output=True, text=True, check=False)


def cheap(folder: Path) -> str:
    folder.mkdir()
    (folder / "saros.toml").write_text("password_cost = 10\n")
    return str(folder)


@pytest.mark.slow
def test_the_first_start_makes_an_administrator_with_a_password_for_once(tmp_path: Path) -> None:
    data = cheap(tmp_path / "data")
    started = run("start", "--data", data, "--port", "0", "--auth")
    try:
        found = re.search(r"another one: (\S+)\n", started.stdout)
        target = re.search(r"saros://(\S+)", started.stdout)
        assert found is not None
        assert target is not None
        with saros.connect(target[0], user="root", password=found[1]) as connection:
            with pytest.raises(saros.ProgrammingError) as caught:
                connection.execute("show databases")
            assert 2040 == caught.value.code
            connection.execute("alter user root set password 'a-lasting-secret'")
        with saros.connect(target[0], user="root", password="a-lasting-secret") as connection:
            connection.execute("create database root.a")
    finally:
        run("stop", "--data", data)
    kept = b"".join(path.read_bytes() for path in Path(data).rglob("*") if path.is_file())
    assert found[1].encode() not in kept
    assert {0o600} == {path.stat().st_mode & 0o777 for path in Path(data, "audit").iterdir()}


@pytest.mark.slow
def test_no_password_ever_appears(tmp_path: Path) -> None:
    """Logins, statements and mistakes contain canaries; the server's files and answers must not contain any canary."""
    data = cheap(tmp_path / "data")
    (tmp_path / "password").write_text("canary-of-root\n")
    words = ("--auth", "--init-admin-password-file", str(tmp_path / "password"), "--log-level", "DEBUG")
    started = run("start", "--data", data, "--port", "0", *words)
    answers = [started.stdout, started.stderr]
    try:
        target = re.search(r"saros://(\S+)", started.stdout)
        assert target is not None
        with saros.connect(target[0], user="root", password="canary-of-root") as connection:
            for text in (
                "create user ann 'canary-of-ann'",
                "create user ann 'canary-again'",
                "alter user nobody set password 'canary-of-nobody'",
                "alter user ann set password 'canary'",
                "explain create user bob 'canary-of-bob'",
                "create user bob canary",
                "create user bob 'canary",
                "creat user bob 'canary'",
                "alter user ann set passwort 'canary'",
                "create user bob 'canary' with pleasure",
                "show queries",
                "list user",
                "list privileges of user ann",
            ):
                try:
                    answers.append(repr(connection.execute(text).fetchall()))
                except saros.Error as error:
                    answers.append(repr(error) + str(error))
            connection.execute("create user eve ?", ["canary-of-eve"])
        with saros.connect(target[0], user="ann", password="canary-of-ann") as connection:
            with pytest.raises(saros.ProgrammingError) as caught:
                connection.execute("create user mallory 'canary-of-mallory'")
            answers.append(repr(caught.value))
        for user in ("root", "nobody"):
            with pytest.raises(saros.Error) as failed:
                saros.connect(target[0], user=user, password="canary-that-is-wrong")
            answers.append(repr(failed.value))
    finally:
        run("stop", "--data", data)
    found = [str(path) for path in Path(data).rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    assert [] == found
    assert [] == [answer for answer in answers if "canary" in answer]
    assert 0 == audit_command.main(["verify", "--data", data])


@pytest.mark.slow
def test_an_open_server_says_so(tmp_path: Path) -> None:
    data = cheap(tmp_path / "data")
    started = run("start", "--data", data, "--port", "0")
    run("stop", "--data", data)
    assert "WARNING: open: anyone on this machine may do everything; `saros user init`" in started.stdout
    first = json.loads(Path(data, "server.log").read_text().splitlines()[0])
    assert ("WARNING", "serving") == (first["level"], first["event"])
    assert "open: anyone" in first["access"]


def test_the_first_administrator_closes_an_open_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def init(password: str) -> int:
        (tmp_path / "password").write_text(password + "\n")
        return user_command.main(["init", "--data", data, "--password-file", str(tmp_path / "password")])

    data = cheap(tmp_path / "data")
    server = Server(data, "127.0.0.1", 0)
    server.start()
    with saros.connect(f"saros://{server.address}") as connection:
        connection.execute("create database root.a")
        assert 1 == init("a-lasting-secret")
        assert "in use" in capsys.readouterr().err
    server.stop()
    assert 1 == init("short")
    assert 0 == init("a-lasting-secret")
    server = Server(data, "127.0.0.1", 0)
    server.start()
    with pytest.raises(saros.OperationalError):
        saros.connect(f"saros://{server.address}")
    saros.connect(f"saros://{server.address}", user="root", password="a-lasting-secret").close()
    server.stop()
    events = [json.loads(line)["event"] for line in Path(data, "audit", "00000001.jsonl").read_text().splitlines()]
    assert ["schema", "login", "login"] == events


def test_a_node_of_a_cluster_gets_no_users_of_its_own(tmp_path: Path) -> None:
    cluster = {"format": 1, "cluster": str(uuid.uuid4()), "node": 1, "replicas": 1, "slots": 100}
    nodes = {"1": {"peer": "127.0.0.1:1", "client": "127.0.0.1:2"}}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster | {"nodes": nodes}))
    with pytest.raises(ConfigurationError, match="node of a cluster"):
        set_administrator(str(tmp_path), "root", ROOT, CHEAP)
    assert not (tmp_path / "meta").exists()


def test_losing_all_passwords_is_mended_in_the_folder(tmp_path: Path) -> None:
    data = cheap(tmp_path / "data")
    assert set_administrator(data, "boss", "a-lasting-secret", CHEAP)
    assert not set_administrator(data, "boss", "another-secret", CHEAP)
    boss = FileDirectory(data, LocalDisk()).users().user("boss")
    assert boss.administrator
    assert verify_password("another-secret", boss.hash)
    FileDirectory(data, LocalDisk()).change(CreateUser("ann", boss.hash))
    with pytest.raises(ConfigurationError, match="without administrator rights"):
        set_administrator(data, "ann", "another-secret", CHEAP)


# ---------------------------------------------------------------------------------------------- the audit trail


def test_the_trail_holds_every_class_of_event(secured: Secured) -> None:
    with secured.connect("root", ROOT) as root:
        root.execute("create database root.a")
        root.execute("insert into root.a.d(time, s) values (1, 1.0)")
        root.execute("delete from root.a.d.s")
        root.execute("create user bob 'a-secret-of-bob'")
    with pytest.raises(Refused):
        secured.open("root", "wrong")
    with secured.connect("ann", ANN) as ann, pytest.raises(saros.ProgrammingError):
        ann.execute("flush")
    found = [(line["event"], line["user"], line["statement"], line["code"]) for line in secured.trail()]
    assert [
        ("login", "root", "", 0),
        ("schema", "root", "create database root.a", 0),
        ("delete", "root", "delete from root.a.d.s", 0),
        ("users", "root", "create user bob '***'", 0),
        ("login", "root", "", 801),
        ("login", "ann", "", 0),
        ("denied", "ann", "flush", 803),
    ] == found
    assert {"ipv4:127.0.0.1"} == {line["host"] for line in secured.trail()}


def written(folder: Path, count: int, file_bytes_max: int = 2_000) -> list[Path]:
    log = AuditLog(str(folder), LocalDisk(), ManualClock(), file_bytes_max=file_bytes_max)
    for number in range(count):
        log.record("login", f"user {number}", "ipv4:127.0.0.1", "ä\ud800\n" * number, 0)
    log.close()
    return sorted((folder / "audit").iterdir())


def test_the_chain_goes_over_files_and_restarts(tmp_path: Path) -> None:
    assert 1 < len(written(tmp_path, 20))
    files = written(tmp_path, 5)
    found = verify(str(tmp_path), LocalDisk())
    assert (1, 25) == (found.first, found.head.number)
    files[0].unlink()
    assert 1 < verify(str(tmp_path), LocalDisk()).first


def test_the_newest_lines_are_read_over_files_up_to_a_number_of_lines_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2 < len(written(tmp_path, 20))
    log = AuditLog(str(tmp_path), LocalDisk(), ManualClock(), file_bytes_max=2_000)
    everything = log.tail(100)
    assert (list(range(20, 0, -1)), True) == ([line.number for line in everything.lines], everything.is_complete)
    newest = log.tail(2)
    assert (["user 19", "user 18"], False) == ([line.user for line in newest.lines], newest.is_complete)
    assert [3] == [line.number for line in log.tail(5, user="user 2").lines]
    assert [] == log.tail(5, event="denied").lines
    monkeypatch.setattr(audit, "TAIL_BYTES_MAX", 3_000)
    near = log.tail(100)
    assert (20, False) == (near.lines[0].number, near.is_complete)
    assert 0 < len(near.lines) < 20
    log.close()


def test_a_file_that_a_killed_process_began_is_there_after_a_power_cut() -> None:
    disk = CrashDisk()
    disk.make_folder("data/audit")
    disk.create("data/audit/00000001.jsonl")
    log = AuditLog("data", disk, ManualClock())
    log.record("login", "root", "ipv4:127.0.0.1", "", 0)
    assert 1 == verify("data", disk.after_power_cut()).head.number


def test_half_a_line_of_a_crash_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, 3, 1 << 20)[0]
    whole = path.read_bytes()
    for cut in range(1, 120, 7):
        path.write_bytes(whole[:-cut])
        written(tmp_path, 1, 1 << 20)
        assert 3 == verify(str(tmp_path), LocalDisk()).head.number


def test_tampering_breaks_the_chain(tmp_path: Path) -> None:
    path = written(tmp_path, 6, 1 << 20)[0]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    tampered = [b"".join(lines[:i] + lines[i + 1 :]) for i in range(1, 5)]
    tampered += [b"".join([lines[1], lines[0], *lines[2:]]), whole.replace(b"user 3", b"user 9"), whole + lines[2]]
    tampered += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(0, len(whole), 11)]
    tampered += [whole.replace(b'"n": 1,', b'"n": 01,'), b"\n" + whole, whole[:-1]]
    for data in tampered:
        path.write_bytes(data)
        with pytest.raises(CorruptFile):
            verify(str(tmp_path), LocalDisk())
    path.write_bytes(whole)
    assert 6 == verify(str(tmp_path), LocalDisk()).head.number
