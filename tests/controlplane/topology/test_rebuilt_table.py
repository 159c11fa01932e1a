"""Whatever was decided in whatever order: the rows lead to the table that the deltas lead to."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import WeirError
from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import (
    aggregators,
    drop_rules,
    key_groupings,
    nodes,
    placement,
    publishing,
    queries,
    rows,
)
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.drop_rules import DropSpec
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import actor, replayed_table, small_cluster
from tests.support.ladders import input_ladder, ladders
from tests.support.records import append_at
from tests.support.texts import SUMMARY

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = st.sampled_from(["q0", "q1", "q2"])
STREAMS = st.sampled_from(["s0", "s1", "s2"])
NODES = st.integers(0, 2)
SPECS = st.builds(
    DropSpec, st.sampled_from([0.1, 0.5, 1.0]), st.sampled_from([None, 60.0]),
    batch=st.sampled_from([1, 1, 2]),
)  # fmt: skip
GROUPINGS = st.sampled_from(
    [("key", {}), ("key", {"weighted": True}), ("partial_key", {}), ("random_choices", {}),
     ("random_choices", {"eps": 0.25, "weighted": False})]
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"), NAMES, st.sets(STREAMS, min_size=1), st.integers(1, 5),
            st.just(("", {})) | GROUPINGS,
        ),
        st.tuples(st.just("end"), NAMES),
        st.tuples(st.just("key_grouping"), NAMES, GROUPINGS),
        st.tuples(st.just("merge"), NAMES, st.none() | NODES),
        st.tuples(st.just("drop"), STREAMS, SPECS, st.just("") | NAMES),
        st.tuples(st.just("lift"), STREAMS, st.just("") | NAMES),
        st.tuples(st.just("capacity"), NODES, st.floats(1, 1000), st.booleans()),
        st.tuples(st.just("record"), STREAMS, st.integers(0, 10**7)),
        st.tuples(st.just("ladder"), st.none() | ladders()),
    ),
    max_size=12,
)  # fmt: skip


def submit(by: Actor, cluster: Cluster, name: str, streams: set[str], *more: Any) -> None:
    text = QueryText({"n": "count(*)"}, key=("car",))
    tasks, (grouping, parameters) = more
    spec = QuerySpec(
        name, sorted(streams), text=text, tasks=tasks, key_grouping=grouping,
        key_grouping_parameters=parameters,
    )  # fmt: skip
    queries.submit(by, cluster, spec)


def drop(by: Actor, cluster: Cluster, stream: str, spec: DropSpec, name: str) -> None:
    drop_rules.set_drop(by, cluster.streams.get(name=stream), spec, name)


def capacity(by: Actor, cluster: Cluster, index: int, per_s: float, emulated: bool) -> None:
    nodes.configure(by, cluster.nodes.get(index=index), capacity=per_s, emulated=emulated)


def set_ladder(by: Actor, cluster: Cluster, ladder: Ladder | None) -> None:
    cluster.refresh_from_db()
    apply(cluster, [SetLadder(ladder)], TopologyChange("a ladder"), actor=by)


VERBS: dict[str, Callable[..., object]] = {
    "submit": submit,
    "end": lambda by, cluster, name: queries.end(by, cluster, [name]),
    "key_grouping": lambda by, cluster, name, to: key_groupings.set_key_grouping(
        by, query_of(cluster, name), *to
    ),
    "merge": lambda by, cluster, name, to: aggregators.set_aggregator(
        by, query_of(cluster, name), to
    ),
    "drop": drop,
    "lift": lambda by, cluster, stream, name: drop_rules.lift(
        by, cluster.streams.get(name=stream), name
    ),
    "capacity": capacity,
    "ladder": set_ladder,
    "record": lambda by, cluster, stream, ts_ms: append_at(
        cluster, cluster.streams.get(name=stream).pk, ts_ms
    ),
}


def query_of(cluster: Cluster, name: str) -> Query:
    """Return the newest query of a name; raises where there is none."""
    found = cluster.queries.filter(name=name).order_by("-id").first()
    if found is None:
        raise WeirError(name)
    return found


@given(steps=STEPS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_rebuilt_table_is_the_one_that_all_deltas_make(
    redis_url: str, steps: list[tuple[Any, ...]]
) -> None:
    """Routes with their key groupings and aggregator nodes, split nodes, capacities and drops."""
    call_command("flush", verbosity=0, interactive=False)
    redis_client().flushdb()
    by = actor()
    cluster = small_cluster(by, nodes=3, stream_count=3)
    # Something to begin with, so that little is refused.
    submit(by, cluster, "q0", {"s0", "s1"}, 5, ("key", {}))
    submit(by, cluster, "q1", {"s1", "s2"}, 3, ("", {}))
    placement.place_pending(cluster.pk)
    for verb, *parts in steps:
        # What is refused must have changed nothing.
        with suppress(WeirError):
            VERBS[verb](by, cluster, *parts)
        placement.place_pending(cluster.pk)
    table = replayed_table(cluster)
    assert rows.current_table(cluster.pk) == table
    assert read_table(redis_client(), "sf", table.version) == table


def test_a_republished_table_loses_nothing(operator: Actor, sf: Cluster) -> None:
    """As after a Redis that lost everything; one of each, so that none is left to chance."""
    text = QueryText({"n": "count(*)"}, key=("car",))
    queries.submit(
        operator, sf, QuerySpec("q", ("s0",), text=text, tasks=8, key_grouping="partial_key")
    )
    queries.submit(operator, sf, QuerySpec("whole", ("s1",), SUMMARY))
    placement.place_pending(sf.pk)
    drop_rules.set_drop(operator, sf.streams.get(name="s0"), DropSpec(0.5), "q")
    drop_rules.set_drop(operator, sf.streams.get(name="s1"), DropSpec(0.5, window_s=60))
    nodes.configure(operator, sf.nodes.get(index=1), capacity=300.0, emulated=True)
    set_ladder(operator, sf, input_ladder(sf.streams.get(name="s0").pk, 0.01))
    before = replayed_table(sf)
    redis_client().flushdb()
    sf.refresh_from_db()
    assert publishing.heal(sf)
    after = read_table(redis_client(), "sf", before.version)
    assert after == before
    assert (len(after.drop_rules), len(after.capacities), len(after.splits)) == (2, 1, 6)
    assert after.ladder is not None
    routes = after.queries.values()
    assert {bool(route.key_grouping) and route.aggregator >= 0 for route in routes} == {
        True, False,
    }  # fmt: skip
