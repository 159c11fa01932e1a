"""What is tried by day, and what by night alone: examples of laws, the second database."""

from typing import Any, Final
from weakref import WeakSet

import hypothesis
import pytest

from tests.support.nightly import NIGHTLY

# A law that declares no more than these has reasons for its number.
FEWEST: Final = 10
# Where `@settings` keeps what it is given, and hypothesis's own plugin for pytest changes it.
_ATTRIBUTE: Final = "_hypothesis_internal_use_settings"
_changed: Final = WeakSet[Any]()
# What `both_databases` runs a test on: the settings' database, and a real PostgreSQL.
DATABASES: Final = ("sqlite", "postgresql")


def load_profile() -> None:
    """Let laws try the same examples in every run by day, and new ones by night.

    So a change that `make test` accepted is accepted again. By night a law that fails prints the
    decorator that reproduces its example; the example then becomes an `@example` of the law.
    """
    # How long an example takes says more about the machine than about the code.
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile(
        "weir", deadline=None, suppress_health_check=slow, derandomize=not NIGHTLY, database=None,
        print_blob=True,
    )  # fmt: skip
    hypothesis.settings.load_profile("weir")


def databases_tried(daily: str = "sqlite") -> tuple[str, ...]:
    """Return the databases of a test that is marked `both_databases`: by day `daily` alone."""
    return DATABASES if NIGHTLY else (daily,)


def fewer(declared: int) -> int:
    """Return how many examples are tried by day of a law that declares so many."""
    return max(min(declared, FEWEST), declared // 10)


def try_fewer_examples(item: pytest.Item) -> None:
    """Reduce the examples of a test by day; `make nightly` tries all."""
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
