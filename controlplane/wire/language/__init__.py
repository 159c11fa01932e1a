"""The language of queries: expressions as SQL text, checked against the schema of a stream."""

from controlplane.wire.language.errors import BadExpression
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.tree import Call, Column, Expression, Kind, Literal

__all__ = ["BadExpression", "Call", "Column", "Expression", "Kind", "Literal", "parsed"]
