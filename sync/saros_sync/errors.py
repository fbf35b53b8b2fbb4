"""What goes wrong between a sender and a receiver, one class per what the sender should do."""

from __future__ import annotations

from saros_storage.base.errors import StorageError


class Unreachable(StorageError):
    """The receiver did not answer, or not in time: ask again, what it has it keeps."""

    code = 2016


class RoundRefused(StorageError):
    """The receiver does not take the round as it is."""

    code = 2060


class BeginAgain(RoundRefused):
    """The round is not in hand there: another node took it, or the receiver has lost something. Begin, at once."""

    code = 2065


class SentElsewhere(StorageError):
    """Something was to be changed here that a sender's data shows: change it at its source."""

    code = 2061


class NoSuchSender(StorageError):
    """No sender of this id has sent anything here."""

    code = 2062
