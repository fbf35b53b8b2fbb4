"""A call that knows its function: what planning makes of calls of functions that users registered. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field

from saros_engine.functions.aggregate import Aggregate
from saros_engine.functions.function import Function
from saros_grammar.syntax.ast import Call


@dataclass(frozen=True, slots=True)
class RegisteredCall(Call):
    """See the module; `function` is always there, and has a default since fields of `Call` have."""

    function: Function | Aggregate | None = field(default=None, compare=False)
