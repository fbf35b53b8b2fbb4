"""SET, LOAD and SHOW CONFIGURATION on this node and on others. Thread-safe; waits for other nodes.

A request of one node to another is JSON: `["configuration", "set", {option: value}]`, `["configuration", "load"]`, or
`["configuration", "show"]`. A node of an older release refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from msgspec.structs import astuple

from saros_cluster.multiraft.peers import BadRequest
from saros_cluster.placement.ring import NodeId
from saros_engine.base.errors import NotSupportedError
from saros_engine.base.node_settings import NodeSettings
from saros_engine.base.other_nodes import UNREACHABLE, OtherNodes, partly_done
from saros_engine.base.row_set import RowSet
from saros_engine.plan.plan import Field
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.types import DataType

_CONFIGURATION = "configuration"
_PREFIX = json.dumps([_CONFIGURATION])[:-1].encode()
_NO_NODE = 2003
_FIELDS = tuple(
    Field(name, DataType.TEXT)
    for name in ("Name", "Value", "DefaultValue", "AfterRestart", "Source", "Effect", "Description")
)


class ConfigurationRequests:
    """Changes and shows the options of all nodes."""

    def __init__(self, settings: NodeSettings | None, node: NodeId, others: OtherNodes | None) -> None:
        """Create them; `settings` is None if statements cannot change options, `others` is None outside a cluster."""
        self._settings = settings
        self._node = node
        self._others = others

    def set(self, values: Mapping[str, str], node: int | None) -> int:
        """Set options of all nodes, or of `node` alone; return the number of nodes.

        Raises UserMistake if an option, a value or the node is wrong. If a node refuses or does not answer, raises
        StorageError after all other nodes have set the options.
        """
        return self._change([_CONFIGURATION, "set", dict(values)], node)

    def load(self, *, local: bool) -> int:
        """Read the configuration files of all nodes again, or only of this one if `local`; return the number of nodes.

        Raises errors as `set` does.
        """
        return self._change([_CONFIGURATION, "load"], self._node if local else None)

    def show(self, node: int | None, *, described: bool) -> RowSet:
        """Return the options of a node (None: this one), with their descriptions if `described`.

        Raises UserMistake if there is no such node, StorageError if it does not answer.
        """
        question = json.dumps([_CONFIGURATION, "show"]).encode()
        told = self.answer(question) if node in (None, self._node) else self._ask(question, node)
        fields = _FIELDS if described else _FIELDS[:-1]
        return RowSet(fields, [tuple(row[: len(fields)]) for row in json.loads(told)])

    def _change(self, words: list[object], node: int | None) -> int:
        question = json.dumps(words).encode()
        if node is not None and node != self._node:
            self._ask(question, node)
            return 1
        self.answer(question)  # the first to check the options
        answers = [] if node is not None or self._others is None else self._others.ask_each(question)
        failed = [answer for _, answer in answers if isinstance(answer, str)]
        if failed:
            raise partly_done("the other nodes have the new options", failed)
        return 1 + len(answers)

    def _ask(self, question: bytes, node: int | None) -> bytes:
        answers = dict([] if self._others is None else self._others.ask_each(question, cast("NodeId", node)))
        if node not in answers:
            raise UserMistake(f"the cluster has no node {node}: SHOW CLUSTER lists its nodes", code=_NO_NODE)
        answer = answers[NodeId(node)]
        if isinstance(answer, str):
            raise StorageError(answer, code=UNREACHABLE)
        return answer

    # ------------------------------------------------------------------ this node

    @staticmethod
    def concerns(question: bytes) -> bool:
        """Return whether a node's question is about options."""
        return question.startswith(_PREFIX)

    def answer(self, question: bytes) -> bytes:
        """Answer a question about options. Raises UserMistake, NotSupportedError, BadRequest."""
        if self._settings is None:
            raise NotSupportedError("options of a folder that is opened without a server")
        match json.loads(question):
            case [_, "set", dict(values)]:
                self._settings.set(values)
            case [_, "load"]:
                self._settings.load()
            case [_, "show"]:
                return json.dumps([astuple(row) for row in self._settings.rows()]).encode()
            case words:
                raise BadRequest(_CONFIGURATION, ValueError(f"unknown request {words!r}"))
        return json.dumps(None).encode()
