"""The parsing of targets. The message about a mistake never repeats a password."""

from __future__ import annotations

import pytest

import saros
from saros.base.target import Target, parse_target, without_password


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("saros://h", Target(("h:6667",))),
        ("saros://h:7000/", Target(("h:7000",))),
        ("saros://a,b:1,a", Target(("a:6667", "b:1"))),
        ("saros://[::1]:7000,[fe80::1],10.0.0.1", Target(("[::1]:7000", "[fe80::1]:6667", "10.0.0.1:6667"))),
        ("saros://u@h", Target(("h:6667",), "u")),
        ("saros://u:p@a,b", Target(("a:6667", "b:6667"), "u", "p")),
        ("saros://u%40x:p%3A%2F%25%C3%A4@h", Target(("h:6667",), "u@x", "p:/%ä")),
        ("saros://u:a:b@h", Target(("h:6667",), "u", "a:b")),
        ("saros://u:@h", Target(("h:6667",), "u")),
        ("saros://h/?consistency=weak&tls=%2Fetc%2Fca.pem", Target(("h:6667",), "", "", "weak", "/etc/ca.pem")),
        ("saros://h?partial_results=true", Target(("h:6667",), partial_results=True)),
        ("saros://h?partial_results=false", Target(("h:6667",), partial_results=False)),
        ("saros://h?consistency=mid", Target(("h:6667",), "", "", "mid")),
    ],
)
def test_target(text: str, expected: Target) -> None:
    assert expected == parse_target(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://u:SECRET@h", "saros://host:port"),
        ("saros://", "number 1.* without a host"),
        ("saros://a,,b", "number 2.* without a host"),
        ("saros://:7000", "number 1.* without a host"),
        ("saros://u:SECRET@", "number 1.* without a host"),
        ("saros://h:port", "port is not a number from 1 to 65535"),
        ("saros://h:", "port is not a number"),
        ("saros://h:0", "port is not a number"),
        ("saros://h:65536", "port is not a number"),
        ("saros://h:²", "port is not a number"),
        ("saros://::1", "several colons: put an IPv6 address in brackets"),
        ("saros://[::1", "brackets that do not match"),
        ("saros://[::1]7000", "brackets that do not match"),
        ("saros://[host]:1", "not an IPv6 address"),
        ("saros://a b", "character that host names cannot have"),
        ("saros://:SECRET@h", "an @ but no user"),
        ("saros://@h", "an @ but no user"),
        ("saros://u:SEC@RET@h", "more than one @"),
        ("saros://u:SECRET@a,u:SECRET@b", "more than one @"),
        ("saros://u:SEC/RET@h", "something after the addresses.*%2F"),
        ("saros://u:SEC#RET@h", "something after the addresses.*%23"),
        ("saros://u:SEC?RET@h", "use consistency=, tls="),
        ("saros://u:SECRET@h/root.a", "something after the addresses"),
        ("saros://u:SEC%RET@h", "% in its password"),
        ("saros://u:SECRET%ff@h", "password that is not UTF-8"),
        ("saros://h/?consistency=SECRET", "use one of strong, mid, weak"),
        ("saros://h/?consistency=weak&consistency=mid", "consistency twice"),
        ("saros://h/?SECRET=1", "use consistency=, tls="),
        ("saros://h/?tls", "use consistency=, tls="),
        ("saros://h/?tls=", "empty tls"),
        ("saros://h/?partial_results=SECRET", "neither true nor false"),
    ],
)
def test_each_mistake_has_its_message_and_no_password(text: str, message: str) -> None:
    with pytest.raises(saros.Error, match=message) as caught:
        parse_target(text)
    for part in ("SECRET", "SEC", "RET"):
        assert part not in str(caught.value)


def test_arguments_go_before_the_target() -> None:
    given = parse_target("saros://u:p@h/?consistency=weak&tls=a.pem")
    assert given == given.override(user=None, password=None, consistency=None, tls_ca=None)
    changed = given.override(user="v", password="q", consistency="strong", tls_ca="b.pem")
    assert Target(("h:6667",), "v", "q", "strong", "b.pem") == changed
    for url in ("saros://h", "saros://h?partial_results=true"):
        partial = parse_target(url).override(
            user=None, password=None, consistency=None, tls_ca=None, partial_results=False
        )
        assert partial.partial_results is False
    with pytest.raises(saros.InterfaceError, match="one of strong"):
        given.override(user=None, password=None, consistency="eventually", tls_ca=None)
    with pytest.raises(saros.InterfaceError, match="password and no user"):
        parse_target("saros://h").override(user=None, password="q", consistency=None, tls_ca=None)


def test_the_password_is_in_no_repr() -> None:
    assert "SECRET" not in repr(parse_target("saros://u:SECRET@h"))


def test_a_target_is_shown_without_its_password() -> None:
    assert "saros://u:***@a,b/?tls=x" == without_password("saros://u:SEC@RET@a,b/?tls=x")
    for plain in ("saros://u@a", "saros://[::1]:1,b:2", "./data@x:y"):
        assert plain == without_password(plain)


def test_a_folder_has_no_users(tmp_path) -> None:
    with pytest.raises(saros.InterfaceError, match="for saros:// targets") as caught:
        saros.connect(str(tmp_path / "data"), user="u", password="SECRET")
    assert "SECRET" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_a_certificate_authority_must_be_there_and_be_one(tmp_path) -> None:
    with pytest.raises(saros.InterfaceError, match="cannot read the certificate authority"):
        saros.connect("saros://127.0.0.1:1", tls_ca=str(tmp_path / "none.pem"))
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(saros.InterfaceError, match="no certificate in PEM form"):
        saros.connect("saros://127.0.0.1:1", tls_ca=str(tmp_path / "ca.pem"))
