"""What is tried by day, and what by night alone: examples of laws, the second database."""

import os
from typing import Any, Final
from weakref import WeakSet

import hypothesis
import pytest

NIGHTLY: Final = "WEIR_SCHEDULES" in os.environ
# A law that declares no more than these has reasons for its number.
FEWEST: Final = 10
# Where `@settings` keeps what it is given, and hypothesis's own plugin for pytest changes it.
_ATTRIBUTE: Final = "_hypothesis_internal_use_settings"
_changed: Final = WeakSet[Any]()
# What `both_databases` runs a test on: the settings' database, and a real PostgreSQL.
DATABASES: Final = ("sqlite", "postgresql")


def databases_tried(daily: str | None = None) -> tuple[str, ...]:
    """Return the databases of a test that is marked `both_databases`.

    `daily`: the only one by day, of tests that take seconds; None: both by day, too.
    """
    if daily is None or NIGHTLY:
        return DATABASES
    return (daily,)


def fewer(declared: int) -> int:
    """Return how many examples are tried by day of a law that declares so many."""
    return max(min(declared, FEWEST), declared // 3)


def try_fewer_examples(item: pytest.Item) -> None:
    """Reduce the examples of a test by day; every run draws others, `make nightly` tries all."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    if NIGHTLY or not hypothesis.is_hypothesis_test(test) or test in _changed:
        return
    # A parametrized test is several items of one function.
    _changed.add(test)
    declared: Any = getattr(test, _ATTRIBUTE)
    setattr(
        test, _ATTRIBUTE, hypothesis.settings(declared, max_examples=fewer(declared.max_examples))
    )
