"""Values of JSON that formats of several planners read."""

from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.errors import BadProblem


def object_fields(
    data: object, needed: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Any]:
    """Return the fields of a JSON object that has the needed ones and no others than these."""
    if not isinstance(data, Mapping):
        raise BadProblem("input", f"must be a JSON object with {', '.join(needed)}")
    missing = [name for name in needed if name not in data]
    if missing:
        raise BadProblem("input", f"lacks {', '.join(missing)}")
    known = (*needed, *optional)
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise BadProblem(unknown[0], f"is unknown; known: {', '.join(known)}")
    return data
