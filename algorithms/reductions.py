"""The parameters that lower an estimate most, for a request that is too large."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate
from algorithms.vocabulary import ParameterField

# A parameter is named if its least value would lower the estimate to this part of it.
_NOTABLE: Final = 0.7
_NAMED: Final = 3


def reducible(
    fields: Iterable[ParameterField],
    given: Mapping[str, Any],
    estimate: Callable[[Mapping[str, Any]], Estimate],
) -> list[str]:
    """Return the names of the parameters that lower an estimate most, at most three of them.

    `estimate`: returns the estimate of other values; may raise `BadParameters`.
    """
    present = estimate(given)
    parts: list[tuple[float, str]] = []
    for field in fields:
        if field.type not in (int, float) or given.get(field.name) is None:
            continue
        try:
            least = estimate({**given, field.name: field.type(field.minimum or 0)})
        except BadParameters:
            # The least value contradicts another parameter.
            continue
        part = min(least.bytes / present.bytes, least.seconds / present.seconds)
        if part < _NOTABLE:
            parts.append((part, field.name))
    return [name for _, name in sorted(parts)[:_NAMED]]
