"""API tokens: their creation, the access that they give, and their end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from manual_clock import ManualClock
from server.frame_client import Refused
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT, SECOND, Secured
from server.thrift_client import ThriftClient
from waiting import wait_until

import saros
from saros_cluster.users.commands import Command, CreateToken, SetPassword
from saros_cluster.users.tokens import Token
from saros_cluster.users.users import Users
from saros_server.auth import tokens
from saros_server.auth.passwords import Cost, hash_password
from saros_server.auth.token_uses import TokenUses
from saros_storage.base.errors import StorageError

DAY = 86_400 * SECOND


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    made = Secured(tmp_path / "data")
    yield made
    made.server.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as made:
        yield made


def create(secured: Secured, text: str, user: str = "root", password: str = ROOT) -> str:
    """Run a CREATE TOKEN statement, and return the secret of the token."""
    with secured.connect(user, password) as connection:
        ((_, _, secret, _),) = connection.execute(text).fetchall()
        return str(secret)


def create_by_http(node: HttpNode, text: str, user: str = "ann", password: str = ANN) -> str:
    answer = node.client.post("/query.json", content=text, auth=(user, password))
    assert 200 == answer.status_code, answer.text
    return str(answer.json()["Secret"])


def ask(node: HttpNode, authorization: str, text: str = "show current_user") -> httpx.Response:
    return node.client.post("/query.csv", content=text, headers={"authorization": authorization})


# ---------------------------------------------------------------------------------------------- secrets


def test_secrets_are_random_and_have_a_checksum() -> None:
    made = {tokens.new_secret() for _ in range(100)}
    assert 100 == len(made)
    for secret in made:
        assert re.fullmatch(r"saros_[A-Za-z0-9_-]{49}", secret)
        assert tokens.has_form(secret)
        assert tokens.has_checksum(secret)
        for place in (6, 30, 54):
            other = "A" if secret[place] != "A" else "E"
            assert not tokens.has_checksum(secret[:place] + other + secret[place + 1 :])


@pytest.mark.parametrize("text", ["", "saros_", "saros_" + "a" * 48, "saros-" + "a" * 49, "saros_" + "ä" * 49])
def test_other_texts_are_no_secrets(text: str) -> None:
    assert not tokens.has_form(text)


# ---------------------------------------------------------------------------------------------- logins


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token"])
def test_http_takes_a_token_by_itself(node: HttpNode, scheme: str) -> None:
    secret = create_by_http(node, "create token gateway")
    assert '"CurrentUser"\n"ann"\n' == ask(node, f"{scheme} {secret}").text


def test_a_token_takes_the_place_of_its_users_password(node: HttpNode) -> None:
    secret = create_by_http(node, "create token gateway")
    query = {"content": "show current_user"}
    assert '"CurrentUser"\n"ann"\n' == node.client.post("/query.csv", auth=("ann", secret), **query).text  # type: ignore[arg-type]
    answer = node.client.post("/query.csv", auth=("root", secret), **query)  # type: ignore[arg-type]
    assert (401, True) == (answer.status_code, "another user has it" in answer.text)


def test_drivers_and_clients_of_iotdb_take_it_as_a_password(secured: Secured) -> None:
    secret = create(secured, "create token gateway for user ann")
    with secured.connect("ann", secret) as connection:
        assert [("ann",)] == connection.execute("show current_user").fetchall()
    with ThriftClient(secured.server.address) as client:
        assert 200 == client.open("ann", secret).status.code


def test_a_token_has_the_rights_of_its_user_at_every_moment(node: HttpNode) -> None:
    bearer = f"Bearer {create_by_http(node, 'create token gateway')}"
    write = "insert into root.a.d(time, s) values (1, 1.0)"
    assert 403 == ask(node, bearer, write).status_code
    for grant in ("grant write on root.a.** to user ann", "grant manage_database on root.** to user ann"):
        assert 200 == node.client.post("/query", content=grant, auth=("root", ROOT)).status_code
    assert 200 == ask(node, bearer, write).status_code
    assert 403 == ask(node, bearer, "create token another").status_code
    assert 403 == ask(node, bearer, "alter user ann set password 'long enough for all'").status_code


def test_what_is_wrong_with_a_token_is_told(node: HttpNode) -> None:
    secret = create_by_http(node, "create token gateway")
    typo = secret[:20] + ("A" if secret[20] != "A" else "E") + secret[21:]
    answers = [ask(node, f"Bearer {text}") for text in (typo, "hunter2", tokens.new_secret())]
    assert [401, 401, 401] == [answer.status_code for answer in answers]
    assert "mistyped" in answers[0].json()["message"]
    assert "wrong user or password" in answers[1].json()["message"]
    assert "too many attempts failed" in answers[2].json()["message"]
    assert 200 == ask(node, f"Bearer {secret}").status_code  # attempts with wrong tokens do not lock out the address


def test_without_users_a_token_is_not_looked_at(tmp_path: Path) -> None:
    with http_server(tmp_path / "data") as node:
        assert 200 == ask(node, "Bearer anything").status_code
        answer = node.sql("create token t")
        assert (400, True) == (answer.status_code, "FOR USER" in answer.text)


# ---------------------------------------------------------------------------------------------- the end


def test_dropping_a_token_ends_its_sessions_and_no_others(node: HttpNode) -> None:
    first, second = (f"Bearer {create_by_http(node, f'create token {name}')}" for name in ("first", "second"))
    assert [200, 200] == [ask(node, bearer).status_code for bearer in (first, second)]
    assert 200 == node.client.post("/query", content="drop token first", auth=("ann", ANN)).status_code
    assert [401, 200] == [ask(node, bearer).status_code for bearer in (first, second)]
    assert 404 == node.client.post("/query", content="drop token first", auth=("ann", ANN)).status_code


def test_another_password_leaves_tokens_and_their_sessions(node: HttpNode) -> None:
    bearer = f"Bearer {create_by_http(node, 'create token gateway')}"
    assert 200 == ask(node, bearer).status_code
    directory = node.api.node.directory
    assert directory is not None
    directory.change(SetPassword("ann", hash_password("another-long-secret", Cost(10))))
    assert 200 == ask(node, bearer).status_code
    assert 200 == node.client.post("/query", content="drop user ann", auth=("root", ROOT)).status_code
    assert 401 == ask(node, bearer).status_code


def test_an_expired_token_ends_its_sessions(secured: Secured) -> None:
    secret, now_ms = tokens.new_secret(), secured.clock.now_ns() // 1_000_000
    secured.directory.change(CreateToken("ann", "gateway", tokens.digest_of(secret), now_ms, now_ms + 60_000))
    with secured.connect("ann", secret) as connection:
        secured.clock.ns += 59 * SECOND
        assert [("ann",)] == connection.execute("show current_user").fetchall()
        secured.clock.ns += SECOND
        with pytest.raises(saros.Error):
            connection.execute("show current_user")
    secured.clock.ns += SECOND
    with pytest.raises(Refused, match="token gateway of user ann has expired"):
        secured.open("ann", secret)


def test_the_day_of_the_last_login_is_shown(secured: Secured) -> None:
    secret = create(secured, "create token gateway")

    def used() -> list[object]:
        with secured.connect("root", ROOT) as root:
            return [row[-1] for row in root.execute("show tokens").fetchall()]

    assert [None] == used()
    for days in (0, 3):
        secured.clock.ns += days * DAY
        secured.open("root", secret)
        wait_until(lambda d=days: [f"2023-11-{14 + d}"] == [str(day) for day in used()])


class CutOffDirectory:
    """The user directory of a node that cannot reach any leader."""

    def __init__(self) -> None:
        self.tried = 0

    def users(self) -> Users:
        return Users()

    def newest(self) -> Users:
        return Users()

    def change(self, command: Command, deadline_ns: int | None = None) -> None:
        self.tried += 1
        raise StorageError(f"no leader for {command}, {deadline_ns}", code=2017)


def test_a_use_that_cannot_be_recorded_is_logged_and_tried_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    clock, directory = ManualClock(), CutOffDirectory()
    uses = TokenUses(directory, clock)
    for day in (1, 2):
        for _ in range(3):
            uses.record(Token("ann", "gateway", "digest", 0))
        wait_until(lambda d=day: d == len(caplog.records))
        clock.ns += DAY
    uses.close()
    assert 2 == directory.tried
    assert {"the use of a token was not recorded"} == {record.getMessage() for record in caplog.records}


# ---------------------------------------------------------------------------------------------- secrecy, files


def test_a_secret_is_in_its_answer_only(secured: Secured) -> None:
    secret = create(secured, "create token gateway for user ann")
    secured.open("ann", secret)
    with pytest.raises(Refused):
        secured.open(secret, secret)  # the secret is also used as the user's name
    with secured.connect("root", ROOT) as root:
        assert secret not in str(root.execute("show tokens").fetchall())
        assert secret not in str(root.execute("show queries").fetchall())
    for path in secured.folder.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_the_trail_tells_of_tokens(secured: Secured) -> None:
    secret = create(secured, "create token gateway for user ann")
    unknown = tokens.new_secret()
    secured.open("ann", secret)
    with pytest.raises(Refused):
        secured.open("", unknown)
    with secured.connect("root", ROOT) as root:
        root.execute("drop token gateway of user ann")
    told = [(line["event"], line["user"], line["statement"], line["code"]) for line in secured.trail()]
    assert ("users", "root", "create token gateway for user ann", 0) in told
    assert ("login", "ann", f"token {tokens.fingerprint(secret)}", 0) in told
    assert ("login", "", f"token {tokens.fingerprint(unknown)}", 801) in told
    assert ("users", "root", "drop token gateway of user ann", 0) in told


def test_tokens_outlive_the_server(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        bearer = f"Bearer {create_by_http(node, 'create token gateway')}"
    with http_server(tmp_path / "data") as node:
        assert 200 == ask(node, bearer).status_code
