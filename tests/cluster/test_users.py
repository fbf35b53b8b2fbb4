"""Users, roles and privileges: changes and their effects, encoding, the file, a comparison with a simple matcher."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_cluster.users import commands
from saros_cluster.users import users as state
from saros_cluster.users.commands import (
    Command,
    CreateRole,
    CreateToken,
    CreateUser,
    DropRole,
    DropToken,
    DropUser,
    Grant,
    Grantee,
    GrantRole,
    Kind,
    RecordTokenUse,
    Rehash,
    Revoke,
    RevokeRole,
    SetPassword,
    decode_command,
    encode_command,
)
from saros_cluster.users.directory import USERS_FILE, FileDirectory
from saros_cluster.users.effective_privileges import Granted, Rights
from saros_cluster.users.privileges import (
    CONTAINS,
    EVERYWHERE,
    ON_PATHS,
    Privilege,
    covers,
    parse_area,
    parse_privileges,
)
from saros_cluster.users.tokens import Token
from saros_cluster.users.users import Users
from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.io.disk import LocalDisk

READ, WRITE = Privilege.READ_DATA, Privilege.WRITE_DATA
ANN, STAFF = Grantee(Kind.USER, "ann"), Grantee(Kind.ROLE, "staff")
COMMANDS = (
    CreateUser("root", "$a", administrator=True, must_change=True),
    CreateUser("ann", "$b"),
    SetPassword("ann", "$c", must_change=True),
    Rehash("ann", "$c", "$d"),
    CreateRole("staff"),
    GrantRole("staff", "ann"),
    Grant((READ, WRITE), ("root.a.**", "root.`b c`.d.s"), ANN, option=True),
    Grant((Privilege.MAINTAIN,), (EVERYWHERE,), STAFF),
    Revoke((WRITE,), ("root.**",), ANN),
    RevokeRole("staff", "ann"),
    CreateToken("ann", "gateway", "d1", 1_000, 2_000),
    CreateToken("root", "gateway", "d2", 1_000),
    RecordTokenUse("ann", "gateway", 3),
    DropToken("root", "gateway"),
    DropRole("staff"),
    DropUser("ann"),
)


def made(*changes: Command) -> Users:
    users = Users()
    for change in changes:
        users = users.apply(change)
    return users


def code_of(users: Users, command: Command) -> int:
    with pytest.raises(UserMistake) as caught:
        users.apply(command)
    return caught.value.code


# ---------------------------------------------------------------------------------------------- tokens

TOKEN = CreateToken("ann", "gateway", "d1", 1_000, 2_000)


def test_a_token_belongs_to_a_user_and_goes_with_the_user() -> None:
    users = made(CreateUser("ann", "$"), CreateUser("bob", "$"), TOKEN, replace(TOKEN, user="bob", digest="d2"))
    assert Token("ann", "gateway", "d1", 1_000, 2_000) == users.token("ann", "gateway") == users.tokens["d1"]
    assert ["d2"] == list(users.apply(DropUser("ann")).tokens)
    assert ["d2"] == list(users.apply(DropToken("ann", "gateway")).tokens)
    again = users.apply(DropUser("ann")).apply(CreateUser("ann", "$"))
    assert [] == again.tokens_of("ann")


def test_another_password_keeps_tokens_and_a_token_keeps_the_version_of_the_user() -> None:
    users = made(CreateUser("ann", "$"), TOKEN)
    assert users.tokens == users.apply(SetPassword("ann", "$2")).tokens
    assert 1 == users.user("ann").version


def test_the_last_day_of_use_only_rises() -> None:
    users = made(CreateUser("ann", "$"), TOKEN, RecordTokenUse("ann", "gateway", 5))
    assert 5 == users.token("ann", "gateway").last_used_day
    for late in (
        RecordTokenUse("ann", "gateway", 5),
        RecordTokenUse("ann", "gateway", 4),
        RecordTokenUse("eve", "x", 9),
    ):
        assert users is users.apply(late)


def test_tokens_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    users = made(CreateUser("ann", "$"), TOKEN)
    assert 804 == code_of(users, replace(TOKEN, user="bob", digest="d2"))
    assert 2043 == code_of(users, replace(TOKEN, digest="d2"))
    assert 2043 == code_of(users, replace(TOKEN, name="other"))
    assert 701 == code_of(users, replace(TOKEN, name="no name", digest="d2"))
    assert 2042 == code_of(users, DropToken("ann", "other"))
    assert 804 == code_of(users, DropToken("bob", "gateway"))
    monkeypatch.setattr(state, "TOKENS_OF_USER_MAX", 1)
    assert 701 == code_of(users, replace(TOKEN, name="other", digest="d2"))


def test_a_state_of_before_there_were_tokens_is_read() -> None:
    words = made(CreateUser("ann", "$")).dump()
    del words["tokens"]
    assert made(CreateUser("ann", "$")) == Users.load(words)
    with pytest.raises(ValueError, match="a user that does not exist"):
        Users.load({**words, "tokens": [["bob", "t", "d", 1, None, None]]})


# ---------------------------------------------------------------------------------------------- changes


def test_a_new_user_may_nothing() -> None:
    rights = made(CreateUser("ann", "$")).rights("ann")
    assert not any(rights.may(privilege, "root.a.b") for privilege in Privilege)


def test_an_administrator_may_everything_whatever_the_name() -> None:
    rights = made(CreateUser("x", "$", administrator=True), CreateUser("root", "$")).rights("x")
    assert all(rights.may(privilege, "root.a.b") for privilege in Privilege)
    assert not made(CreateUser("root", "$")).rights("root").may(READ, "root.a")


def test_rights_are_ones_own_and_those_of_the_roles() -> None:
    users = made(CreateUser("ann", "$"), CreateRole("staff"), GrantRole("staff", "ann"))
    users = users.apply(Grant((READ,), ("root.a.**",), ANN)).apply(Grant((READ,), ("root.b.**",), STAFF))
    rights = users.rights("ann")
    assert (True, True, False) == tuple(rights.may(READ, f"root.{name}.s") for name in "abc")
    assert not users.apply(RevokeRole("staff", "ann")).rights("ann").may(READ, "root.b.s")
    assert not users.apply(DropRole("staff")).rights("ann").may(READ, "root.b.s")


def test_revoking_takes_what_lies_within_and_tells_when_there_is_nothing() -> None:
    users = made(CreateUser("ann", "$"), Grant((READ, WRITE), ("root.a.b.**", "root.a.s", "root.c.**"), ANN))
    left = users.apply(Revoke((READ, WRITE), ("root.a.**",), ANN))
    assert {"root.c.**"} == {granted.area for granted in left.user("ann").grants}
    assert 811 == code_of(users, Revoke((READ,), ("root.a.b.c",), ANN))


def test_a_grant_keeps_its_option_when_it_is_given_again_without() -> None:
    users = made(
        CreateUser("ann", "$"), Grant((READ,), ("root.a.**",), ANN, option=True), Grant((READ,), ("root.a.**",), ANN)
    )
    assert (Granted(READ, "root.a.**", option=True),) == users.user("ann").grants
    rights = users.rights("ann")
    assert rights.may_pass_on(READ, "root.a.b.**")
    assert not rights.may_pass_on(READ, "root.**")
    assert not rights.may_pass_on(WRITE, "root.a.b")


def test_what_concerns_a_user_raises_the_users_version_and_nothing_else() -> None:
    users = made(CreateUser("ann", "$"), CreateUser("bob", "$"), CreateRole("staff"), GrantRole("staff", "ann"))
    for change in (
        Grant((READ,), ("root.a",), ANN),
        Grant((READ,), ("root.a",), STAFF),
        RevokeRole("staff", "ann"),
        DropRole("staff"),
        SetPassword("ann", "$2"),
    ):
        after = users.apply(change)
        assert after.user("ann").version == after.version > users.user("ann").version, change
        assert users.user("bob").version == after.user("bob").version


def test_only_a_password_raises_the_version_of_the_password() -> None:
    users = made(CreateUser("ann", "$1"))
    first = users.user("ann").password_version
    users = users.apply(Grant((READ,), ("root.a",), ANN)).apply(Rehash("ann", "$1", "$2"))
    assert ("$2", first) == (users.user("ann").hash, users.user("ann").password_version)
    assert first < users.apply(SetPassword("ann", "$3")).user("ann").password_version
    assert first < users.apply(DropUser("ann")).apply(CreateUser("ann", "$2")).user("ann").password_version


def test_rehashing_loses_against_a_new_password() -> None:
    users = made(CreateUser("ann", "$1"), SetPassword("ann", "$new"))
    assert users is users.apply(Rehash("ann", "$1", "$2"))


def test_the_last_administrator_stays() -> None:
    users = made(CreateUser("a", "$", administrator=True), CreateUser("ann", "$"))
    assert 701 == code_of(users, DropUser("a"))
    both = users.apply(CreateUser("b", "$", administrator=True))
    assert {"b", "ann"} == set(both.apply(DropUser("a")).users)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateUser("ann", "$"), 805),
        (CreateRole("staff"), 809),
        (DropUser("nobody"), 804),
        (SetPassword("nobody", "$"), 804),
        (DropRole("nothing"), 808),
        (GrantRole("nothing", "ann"), 808),
        (GrantRole("staff", "nobody"), 804),
        (RevokeRole("staff", "ann"), 807),
        (Grant((READ,), ("root.a",), Grantee(Kind.ROLE, "nothing")), 808),
        (Grant((READ,), ("root.*.a",), ANN), 303),
        (Grant((READ,), ("root.a*.**",), ANN), 303),
        (Grant((READ,), ("root.**.a",), ANN), 303),
        (Grant((READ,), ("nothing",), ANN), 509),
        (Grant((READ, Privilege.MAINTAIN), ("root.a.**",), ANN), 701),
        (CreateUser("", "$"), 701),
        (CreateUser("a b", "$"), 701),
        (CreateUser("__system", "$"), 701),
        (CreateUser("ﬁ", "$"), 701),
        (CreateUser("a" * 65, "$"), 701),
        (CreateRole("a\0b"), 701),
    ],
)
def test_a_change_that_cannot_be_changes_nothing(command: Command, code: int) -> None:
    users = made(CreateUser("ann", "$"), CreateRole("staff"))
    assert code == code_of(users, command)


def test_granting_a_role_twice_is_told() -> None:
    assert 806 == code_of(
        made(CreateUser("ann", "$"), CreateRole("staff"), GrantRole("staff", "ann")), GrantRole("staff", "ann")
    )


def test_names_of_privileges() -> None:
    assert (READ, Privilege.READ_SCHEMA) == parse_privileges(["READ"])
    assert tuple(Privilege) == parse_privileges(["ALL", "READ_DATA"])
    assert tuple(Privilege) == parse_privileges(["SECURITY", "SYSTEM", "WRITE", "READ"])
    assert (Privilege.MANAGE_USER, Privilege.MANAGE_ROLE) == parse_privileges(["SECURITY"])
    with pytest.raises(UserMistake, match="privilege FLY does not exist; the privileges are READ_DATA"):
        parse_privileges(["FLY"])


# ---------------------------------------------------------------------------------------------- bytes and the file


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: type(c).__name__)
def test_a_command_survives_its_bytes(command: Command) -> None:
    assert command == decode_command(encode_command(command))


def test_every_command_is_among_those_that_were_tried() -> None:
    assert set(get_args(Command)) == {type(command) for command in COMMANDS} == set(commands._KINDS.values())


@pytest.mark.parametrize(
    "junk", [b"", b"[]", b"[[]]", b'["drop user"]', b'["drop user", 1]', b'["grant", ["FLY"], [], [], 0]', b"\xff"]
)
def test_junk_is_no_command(junk: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_command(junk)


def test_no_hash_is_printed() -> None:
    secrets = [replace(c, hash="canary") for c in COMMANDS if isinstance(c, CreateUser | SetPassword | Rehash)]
    assert "canary" not in repr(secrets)
    assert "canary" not in repr(made(CreateUser("ann", "canary")))


def test_a_state_survives_its_dump() -> None:
    for count in range(len(COMMANDS) + 1):
        users = made(*COMMANDS[:count])
        assert users == Users.load(users.dump())


def test_the_file_keeps_what_was_changed(tmp_path: Path) -> None:
    directory = FileDirectory(str(tmp_path), LocalDisk())
    assert Users() == directory.users()
    for command in COMMANDS[:8]:
        directory.change(command)
    assert made(*COMMANDS[:8]) == directory.users() == FileDirectory(str(tmp_path), LocalDisk()).users()
    before = directory.users()
    with pytest.raises(UserMistake):
        directory.change(CreateUser("ann", "$"))
    assert before is directory.users()
    assert 0o600 == (tmp_path / USERS_FILE).stat().st_mode & 0o777


@pytest.mark.parametrize("damage", [b"", b"junk", b"saros-users 1 00000000\n{}", b"saros-users 2 00000000\n{}"])
def test_a_file_that_cannot_be_read_is_not_taken_for_no_users(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / USERS_FILE).write_bytes(damage)
    with pytest.raises(StorageError) as caught:
        FileDirectory(str(tmp_path), LocalDisk())
    assert caught.value.code in (2010, 2015)


def test_a_flipped_bit_in_the_file_is_found(tmp_path: Path) -> None:
    FileDirectory(str(tmp_path), LocalDisk()).change(CreateUser("ann", "$"))
    path = tmp_path / USERS_FILE
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StorageError):
            FileDirectory(str(tmp_path), LocalDisk())


# ---------------------------------------------------------------------------------------------- simple matcher

NODES = st.sampled_from(["a", "b", "`a.b`", "`x``.y`", "ab"])
PATHS = st.lists(NODES, max_size=4).map(lambda nodes: ".".join(["root", *nodes]))
AREAS = st.tuples(PATHS, st.booleans()).map(lambda pair: pair[0] + ".**" * pair[1])
PATTERNS = st.lists(st.one_of(NODES, st.sampled_from(["*", "**", "a*"])), max_size=4).map(
    lambda n: ".".join(["root", *n])
)
POLICIES = st.lists(st.tuples(st.sampled_from(sorted(ON_PATHS, key=str)), AREAS), max_size=6)


def plainly(policy: list[tuple[Privilege, str]], privilege: Privilege, path: str) -> bool:
    nodes = split_path(path)
    return any(privilege in (held, CONTAINS.get(held)) and parse_pattern(area).matches(nodes) for held, area in policy)


@given(POLICIES, PATHS)
def test_may_agrees_with_the_plain_matcher(policy: list[tuple[Privilege, str]], path: str) -> None:
    rights = Rights([Granted(privilege, area) for privilege, area in policy])
    for privilege in ON_PATHS:
        assert plainly(policy, privilege, path) == rights.may(privilege, path)


@given(POLICIES, PATHS, PATHS)
def test_what_is_allowed_below_a_path_is_allowed_there(
    policy: list[tuple[Privilege, str]], path: str, other: str
) -> None:
    rights = Rights([Granted(privilege, area) for privilege, area in policy])
    assert rights.may_below(READ, path) == rights.may_all(READ, path + ".**")
    if rights.may_below(READ, path) and other.startswith(path + "."):
        assert plainly(policy, READ, other)


@given(POLICIES, PATTERNS, st.lists(PATHS, max_size=30))
def test_what_is_allowed_as_a_whole_is_allowed_in_each_part(
    policy: list[tuple[Privilege, str]], pattern: str, paths: list[str]
) -> None:
    rights = Rights([Granted(privilege, area) for privilege, area in policy])
    matched = [path for path in paths if parse_pattern(pattern).matches(split_path(path))]
    if rights.may_all(READ, pattern):
        assert all(plainly(policy, READ, path) for path in matched)
    elif any(area == pattern for held, area in policy if held is READ):
        raise AssertionError("what was granted is not allowed")


@pytest.mark.slow
@given(POLICIES, PATHS, PATHS)
def test_whoever_may_something_below_sees_the_path(policy: list[tuple[Privilege, str]], path: str, other: str) -> None:
    rights = Rights([Granted(privilege, area) for privilege, area in policy])
    if rights.may(READ, other) and (other + ".").startswith(path + ".") and any(a == other for _, a in policy):
        assert rights.sees(READ, path)
    if rights.sees(READ, path) and not rights.may(READ, path):
        granted = [area.removesuffix(".**") for held, area in policy if READ in (held, CONTAINS.get(held))]
        assert any((area + ".").startswith(path + ".") for area in granted)


@given(AREAS, AREAS, st.lists(PATHS, max_size=30))
def test_covering_is_containing(area: str, other: str, paths: list[str]) -> None:
    area, other = parse_area(area), parse_area(other)
    inside, outside = parse_pattern(other), parse_pattern(area)
    if covers(area, other):
        assert all(outside.matches(split_path(p)) for p in paths if inside.matches(split_path(p)))
    elif not other.endswith("**"):
        assert not outside.matches(split_path(other))
