from __future__ import annotations

import pytest

from saros_shell.mqtt.broker_address import MqttUsageError, parse_broker
from saros_shell.mqtt.routes import BadMessage, Route, Router, parse_template, parse_topic


def router(topic: str, path: str) -> Router:
    parsed = parse_topic(topic)
    return Router([Route(parsed, parse_template(path, parsed))])


@pytest.mark.parametrize(
    ("topic", "path", "message", "nodes"),
    [
        ("plant/+/+", "root.plant.{1}.{2}", "plant/hall1/pump", ["root", "plant", "hall1", "pump"]),
        ("plant/{area}/{dev}", "root.p.{dev}.{area}", "plant/a/b", ["root", "p", "b", "a"]),
        ("plant/{area}/+", "root.p.{1}_{2}", "plant/a/b", ["root", "p", "a_b"]),
        ("+/x", "root.{1}", "hall 1.a`b/x", ["root", "`hall 1.a``b`"]),
        ("+", "root.`a b{1}`", "c", ["root", "`a bc`"]),
        ("+", "root.d.{1}", "12", ["root", "d", "`12`"]),
        ("plant/#", "root.p.{1}", "plant/a/b/c", ["root", "p", "a", "b", "c"]),
        ("plant/#", "root.p.{1}", "plant", ["root", "p"]),
        ("#", "root.{1}", "a/b", ["root", "a", "b"]),
        ("$share/g/a/+", "root.p.{1}", "a/b", ["root", "p", "b"]),
        ("a/b", "root.field.x", "a/b", ["root", "field", "x"]),
        ("+", "root.p.{1}", "line\nbreak", ["root", "p", "`line\nbreak`"]),
    ],
)
def test_the_path_of_a_topic(topic: str, path: str, message: str, nodes: list[str]) -> None:
    assert tuple(nodes) == router(topic, path).path_of(message)


def test_the_first_route_that_matches_counts() -> None:
    first, second = parse_topic("a/b"), parse_topic("a/+")
    both = Router([Route(first, parse_template("root.x", first)), Route(second, parse_template("root.y", second))])
    assert [("root", "x"), ("root", "y")] == [both.path_of("a/b"), both.path_of("a/c")]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("plant//pump", "a level of the topic is empty"),
        ("other/a/b", "no --topic matches"),
        ("plant/a", "no --topic matches"),
        ("plant/a/b/c", "no --topic matches"),
    ],
)
def test_a_topic_without_a_path_is_bad(message: str, reason: str) -> None:
    with pytest.raises(BadMessage, match=reason):
        router("plant/+/+", "root.plant.{1}.{2}").path_of(message)


def test_named_fields_are_subscribed_as_wildcards() -> None:
    assert "$share/g/plant/+/+/#" == parse_topic("$share/g/plant/{area}/+/#").subscription


@pytest.mark.parametrize(
    "topic", ["", "a+/b", "a/#/b", "a/b#", "{a}{b}", "{a}/{a}", "+/{1}/{1}", "a\0", "{", "x" * 70_000]
)
def test_a_topic_that_is_none_is_refused(topic: str) -> None:
    with pytest.raises(MqttUsageError, match="--topic"):
        parse_topic(topic)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("plant.{1}", "does not begin with root"),
        ("{1}.a", "does not begin with root"),
        ("root.{2}", r"\{2\} is not a field of --topic a/\+; it has \{1\}"),
        ("root.a b", "is not a legal path"),
        ("root.", "a node is missing"),
        ("root.*", "wildcard"),
        ("", "a node is missing"),
    ],
)
def test_a_path_that_is_none_is_refused(path: str, reason: str) -> None:
    with pytest.raises(MqttUsageError, match=reason):
        parse_template(path, parse_topic("a/+"))


def test_the_field_of_all_levels_is_a_node_of_its_own() -> None:
    with pytest.raises(MqttUsageError, match="several levels"):
        parse_template("root.a_{1}", parse_topic("a/#"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://127.0.0.1", ("127.0.0.1", 1883, False, "", "127.0.0.1:1883")),
        ("mqtts://gate@broker.example:8884/", ("broker.example", 8884, True, "gate", "broker.example:8884")),
        ("mqtts://[::1]", ("::1", 8883, True, "", "[::1]:8883")),
        ("mqtt://a%40b@h:1", ("h", 1, False, "a@b", "h:1")),
    ],
)
def test_addresses(url: str, expected: tuple[object, ...]) -> None:
    found = parse_broker(url)
    assert expected == (found.host, found.port, found.tls, found.user, str(found))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:1883", "http://h", "mqtt://", "mqtt://h:99999", "mqtt://[::1", "mqtt://h/x", "mqtt://h:0"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(MqttUsageError, match="not an address"):
        parse_broker(url)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(MqttUsageError, match="SAROS_MQTT_PASSWORD") as caught:
        parse_broker("mqtt://user:secret@h")
    assert "secret" not in str(caught.value)
