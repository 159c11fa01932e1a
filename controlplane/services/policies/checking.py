"""Checking the values of a policy: each field by its own rules, then those that belong together."""

import math
from collections.abc import Callable, Mapping
from datetime import time
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import models

from controlplane.errors import Fields, Invalid
from controlplane.models import Policy, Proposal

KINDS: Final = tuple(str(kind) for kind in Proposal.Kind.values)
DAYS: Final = 7
# A figure beyond these is a slip of the keyboard: a tolerance of a hundredfold, a day of pause.
_MOST: Final[Mapping[str, float]] = {
    "auto_record_error": 100.0,
    "auto_record_runs": 1000,
    "tolerated_rates": 100.0,
    "tolerated_new": 100.0,
    "watch_imbalance": 100.0,
    "watch_replication": 1000.0,
    "pause_ms": 86_400_000,
    "latency_ms": 86_400_000,
    "cooldown_s": 7 * 86_400,
}


def checked(policy: Policy, changes: Mapping[str, Any], editable: tuple[str, ...]) -> None:
    """Put the changes into an unsaved policy. Raises `Invalid` per field, and changes nothing."""
    faults: Fields = {}
    found: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in editable:
            faults[name[:60]] = ["There is no such setting"]
            continue
        try:
            found[name] = _value(name, value)
        except (ValidationError, Refused) as refusal:
            told = refusal.messages if isinstance(refusal, ValidationError) else [str(refusal)]
            faults[name] = [_sentence(one) for one in told]
    together = {
        name: found.get(name, getattr(policy, name)) for name in ("auto_from", "auto_until")
    }
    if not faults.keys() & together.keys():
        faults |= _window_faults(together["auto_from"], together["auto_until"])
    if faults:
        raise Invalid(faults)
    for name, value in found.items():
        setattr(policy, name, value)


class Refused(ValueError):
    """A value that the field cannot have; str() says what it can."""


def _value(name: str, value: Any) -> Any:
    if name in _OWN:
        return _OWN[name](value)
    field = Policy._meta.get_field(name)  # noqa: SLF001 - public API
    assert isinstance(field, models.Field)
    _check_type(field, value)
    cleaned = field.clean(value, None)
    if name in _MOST and cleaned > _MOST[name]:
        raise Refused(f"Must be at most {_MOST[name]:,g}")
    return cleaned


def _check_type(field: "models.Field[Any, Any]", value: Any) -> None:
    """Refuse what Django would quietly turn into something else."""
    if isinstance(field, models.BooleanField):
        if not isinstance(value, bool):
            raise Refused("Must be true or false")
        return
    if isinstance(field, models.IntegerField | models.FloatField):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused("Must be a number")
        if not math.isfinite(value):
            raise Refused("Must be finite")
        if isinstance(field, models.IntegerField) and value != int(value):
            raise Refused("Must be a whole number")


def _kinds(value: Any) -> list[str]:
    if not isinstance(value, list) or any(kind not in KINDS for kind in value):
        raise Refused(f"Must be a list of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in value]


def _days(value: Any) -> list[int]:
    listed = value if isinstance(value, list) else None
    if listed is None or any(type(day) is not int or not 0 <= day < DAYS for day in listed):
        raise Refused("Must be a list of days, 0 (Monday) to 6 (Sunday)")
    return sorted(set(listed))


def _time(value: Any) -> time | None:
    if value in (None, ""):
        return None
    try:
        found = value if isinstance(value, time) else time.fromisoformat(str(value))
    except ValueError:
        raise Refused("Must be a time of day, as 08:30") from None
    if found.tzinfo is not None:
        raise Refused("Give it in UTC, without a zone")
    return found.replace(microsecond=0)


_OWN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "auto_kinds": _kinds,
    "auto_days": _days,
    "auto_from": _time,
    "auto_until": _time,
}


def _window_faults(begin: time | None, end: time | None) -> Fields:
    if (begin is None) != (end is None):
        missing = "auto_from" if begin is None else "auto_until"
        return {missing: ["A window has both ends, or none"]}
    if begin is not None and begin == end:
        return {"auto_until": ["Must differ from where the window begins"]}
    return {}


def _sentence(told: str) -> str:
    return told.rstrip(".").replace("Ensure this value is", "Must be")
