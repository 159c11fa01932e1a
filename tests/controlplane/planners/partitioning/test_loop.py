"""The reading of the skew of keys."""

from collections.abc import Sequence
from typing import Any

from controlplane.planners.partitioning.loop import skew_reading
from controlplane.planners.partitioning.skew_history import QuerySkew
from controlplane.policies.settings import PolicySettings
from controlplane.watch.reading import LoopReading
from tests.support.watching import looked


def read(*, skews: Sequence[QuerySkew] = (), **changed: Any) -> LoopReading:
    return skew_reading(looked(**changed), skews)


def test_the_most_skewed_query_counts() -> None:
    assert (read().calm, read().limit) == ("within", None)
    assert read(split_queries=2).number is None
    skews = [QuerySkew(1, "q", 0.1), QuerySkew(2, "r", 0.25)]
    found = read(split_queries=2, skews=skews)
    assert (found.number, found.limit, found.trouble) == (0.25, 0.2, True)
    assert found.text.startswith("Skew of r ")
    near = read(split_queries=1, skews=[QuerySkew(1, "q", 0.19)])
    assert (near.trouble, near.near) == (False, True)
    policy = PolicySettings(watch_skew=0.3)
    assert not read(split_queries=2, skews=skews, policy=policy).trouble


def test_excluded_skewed_queries_block_only_together() -> None:
    skews = [QuerySkew(1, "q", 0.22), QuerySkew(2, "r", 0.25)]
    some = read(split_queries=2, skews=skews, excluded_queries=frozenset({"r"}))
    assert (some.trouble, some.blocked) == (True, "")
    names = frozenset({"q", "r"})
    every = read(split_queries=2, skews=skews, excluded_queries=names)
    assert every.blocked == "excluded"
    assert read(split_queries=2, skews=skews[:0], excluded_queries=names).blocked == ""
