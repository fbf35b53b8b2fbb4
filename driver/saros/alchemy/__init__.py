"""SQLAlchemy on Saros: `create_engine("saros://host:6667")`, `create_engine("saros+embedded:///folder")`.

dialect      addresses, connections, and how results become those of the SELECT that was asked
compiler     statements: what the tree model has no word for is refused before it is sent
reflection   databases are schemas, devices are tables, series are columns beside `time`

Needs the extra `saros[sqlalchemy]`; nothing else of Saros imports it.
"""

from __future__ import annotations

from saros.alchemy.dialect import EmbeddedDialect, SarosDialect

__all__ = ["EmbeddedDialect", "SarosDialect"]
