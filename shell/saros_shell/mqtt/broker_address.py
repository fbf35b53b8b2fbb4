"""Addresses of brokers: mqtt://[user@]host[:port], or mqtts:// for TLS. Pure: any thread."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import msgspec

PORTS = {"mqtt": 1883, "mqtts": 8883}
_FORM = "mqtt://[user@]host[:port], or mqtts:// for TLS"


class MqttUsageError(Exception):
    """The options of the command are wrong."""


class BrokerAddress(msgspec.Struct, frozen=True):
    """The address of a broker, and the user that logs in ("" for none)."""

    host: str
    port: int
    tls: bool
    user: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_broker(text: str) -> BrokerAddress:
    """Return the address of a URL. Raises MqttUsageError, whose message never contains a password."""
    try:
        parts = urlsplit(text)
        host, port, password = parts.hostname, parts.port, parts.password
    except ValueError as error:
        raise MqttUsageError(f"--broker is not an address: {error}; write {_FORM}") from None
    if password is not None:
        raise MqttUsageError(
            "--broker contains a password, which others on this machine could see; put it into SAROS_MQTT_PASSWORD"
        )
    if parts.scheme not in PORTS or not host or parts.path.strip("/") or parts.query or parts.fragment or port == 0:
        raise MqttUsageError(f"--broker {text!r} is not an address; write {_FORM}")
    return BrokerAddress(host, port or PORTS[parts.scheme], parts.scheme == "mqtts", unquote(parts.username or ""))
