"""CREATE, DROP and SHOW of user-defined functions and triggers.

A registration applies to all nodes, so its entry point must already be installed on all of them. The other nodes are
asked whether they have the entry point. A node that does not answer counts as a node without it. A node that joins
later, or whose package was removed, reports the missing entry point when a statement needs it.
"""

from __future__ import annotations

from typing import Protocol

from saros_engine.base.row_set import Row, RowSet
from saros_engine.extensions.installed import FUNCTIONS as FUNCTIONS_GROUP
from saros_engine.extensions.installed import TRIGGERS as TRIGGERS_GROUP
from saros_engine.extensions.registered import function_creation, function_removal, function_rows
from saros_engine.extensions.triggers import Triggers, trigger_creation, trigger_removal
from saros_engine.functions.registry import AGGREGATES, FUNCTIONS
from saros_engine.plan.plan import Field
from saros_engine.transforms import POINT_FUNCTIONS
from saros_grammar.syntax.ast import CreateFunction, CreateTrigger, DropFunction, DropTrigger, ExtensionStatement
from saros_storage.base.types import DataType
from saros_storage.schema import Catalogue, SchemaChange


class Installations(Protocol):
    """Access to the lists of extensions installed on the other nodes of a cluster."""

    def require(self, group: str, entry: str) -> None:
        """Raise UserMistake 1200 or 1303, with the node and the reason, if a node lacks an entry point."""
        ...


def extension_changes(
    statement: ExtensionStatement, catalogue: Catalogue, installations: Installations | None
) -> list[SchemaChange]:
    """Return the schema changes of a CREATE or DROP. Raises UserMistake if the statement is not possible.

    `installations` is None if there are no other nodes.
    """
    match statement:
        case CreateFunction():
            changes, group = function_creation(statement, catalogue), FUNCTIONS_GROUP
        case CreateTrigger():
            changes, group = trigger_creation(statement, catalogue), TRIGGERS_GROUP
        case DropFunction(name):
            return function_removal(name, catalogue)
        case DropTrigger(name):
            return trigger_removal(name, catalogue)
    if changes and installations is not None:
        installations.require(group, statement.entry)
    return changes


def show_functions(catalogue: Catalogue) -> RowSet:
    """Return the rows of SHOW FUNCTIONS: built-in and registered functions, sorted by name."""
    kinds = dict.fromkeys(AGGREGATES, "built-in aggregate function")
    kinds |= {name: f"built-in {function.kind.value} function" for name, function in FUNCTIONS.items()}
    kinds |= dict.fromkeys(POINT_FUNCTIONS, "built-in series function")
    registered = function_rows(catalogue)
    hidden = {row[0] for row in registered}
    own = [(name.upper(), kind, "", "AVAILABLE") for name, kind in kinds.items() if name.upper() not in hidden]
    rows: list[Row] = [*sorted([*own, *registered])]
    return RowSet(_texts("FunctionName", "FunctionType", "ClassName(UDF)", "State"), rows)


def show_triggers(triggers: Triggers) -> RowSet:
    """Return the rows of SHOW TRIGGERS, each with the state of the trigger on this node."""
    fields = _texts("TriggerName", "Event", "Type", "State", "PathPattern", "ClassName", "NodeID")
    return RowSet(fields, [*triggers.rows()])


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, DataType.TEXT) for name in names)
