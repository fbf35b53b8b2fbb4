"""Errors between a sender and a receiver. Each class requires a different action of the caller."""

from __future__ import annotations

from saros_storage.base.errors import StorageError


class Unreachable(StorageError):
    """The receiver did not answer in time. Repeat the request: the receiver keeps all bytes that it has received."""

    code = 2016


class RoundRefused(StorageError):
    """The receiver does not accept the round in its present form."""

    code = 2060


class BeginAgain(RoundRefused):
    """The receiver has no such round in progress: another node took it, or a content was lost. Begin again at once."""

    code = 2065


class SentElsewhere(StorageError):
    """A statement would change data that a sender supplies. Such data must be changed at the sender."""

    code = 2061


class NoSuchSender(StorageError):
    """No sender with this id has sent anything here."""

    code = 2062
