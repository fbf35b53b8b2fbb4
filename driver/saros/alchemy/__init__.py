"""SQLAlchemy on Saros: `create_engine("saros://host:6667")`, `create_engine("saros+embedded:///folder")`.

dialect      addresses, connections, and the mapping of results to the selected columns
compiler     compiles statements; refuses statements that the tree model cannot express
reflection   databases as schemas, devices as tables, `time` and the series as columns

Needs the extra `saros[sqlalchemy]`. No other part of Saros imports this package.
"""

from __future__ import annotations

from saros.alchemy.dialect import EmbeddedDialect, SarosDialect

__all__ = ["EmbeddedDialect", "SarosDialect"]
