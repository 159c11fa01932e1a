"""The explanation of a query before its submission, for the present state of a cluster."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.explain.drafts.explanation import explain
from controlplane.models import Cluster, Query, RoutingVersion
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries
from controlplane.watch.observation import ClusterObservation
from controlplane.wire.measures import TaskMeasure
from controlplane.wire.query_text import QueryText
from tests.support import cluster as made

TEXT = QueryText({"n": "count(*)"}, key=("car",))


def test_the_node_is_that_which_the_placement_chooses_then(operator: Actor, sf: Cluster) -> None:
    made.placed(operator, sf, {"a": ["s5"], "b": ["s4"], "c": ["s3"]})
    versions = RoutingVersion.objects.count()
    answer = explain(sf, QuerySpec("", ("s5", "s0"), TEXT))
    assert RoutingVersion.objects.count() == versions
    assert [(s.name, s.records_per_s, s.is_measured) for s in answer.streams] == [
        ("s0", 1.0, False), ("s5", 6.0, False),
    ]  # fmt: skip
    assert answer.records_per_s == 7.0
    assert answer.place is not None
    query = queries.submit(operator, sf, QuerySpec("draft", ("s5", "s0"), TEXT))
    placement.place_pending(sf.pk)
    node = Query.objects.get(pk=query.pk).tasks.get().node
    assert (answer.place.node, answer.place.node_name) == (node.index, node.name)


def test_streams_that_a_node_receives_already_cost_nothing_more(
    operator: Actor, sf: Cluster
) -> None:
    sf.alpha = 1000.0
    sf.save()
    made.placed(operator, sf, {"a": ["s5"]})
    place = explain(sf, QuerySpec("", ("s5", "s0"), TEXT)).place
    assert place is not None
    assert place.queries in (0, 1)
    assert place.added_per_s == (1.0 if place.received else 7.0)


def test_tasks_and_aggregator_have_their_nodes(operator: Actor, sf: Cluster) -> None:
    spec = QuerySpec("", ("s0",), TEXT, tasks=4, key_grouping="partial_key")
    place = explain(sf, spec).place
    assert place is not None
    assert sorted(node for node, _, _ in place.task_ranges) == [0, 1, 2, 3]
    assert place.aggregator.startswith("node ")


def test_queries_with_the_same_computation_share_records_and_measure_the_state(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sf.nodes.exclude(index=0).update(active=False)
    query = queries.submit(operator, sf, QuerySpec("same", ("s5",), TEXT))
    placement.place_pending(sf.pk)
    measure = TaskMeasure(query.pk, 0, 0, 3.0, 1500)
    monkeypatch.setattr(ClusterObservation, "task_measures", [measure])
    answer = explain(sf, QuerySpec("", ("s5", "s0"), TEXT))
    assert [(row.name, row.records_per_s) for row in answer.shared] == [("same", 6.0)]
    assert answer.shared_count == 1
    assert (answer.state.least, answer.state.most, answer.state.is_measured) == (3500, 3500, True)
    other = explain(sf, QuerySpec("", ("s5",), QueryText({"n": "max(speed)"}, key=("car",))))
    assert (other.shared_count, other.state.is_measured) == (0, False)


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [({}, True), ({"key": ("car",)}, False)],
)
def test_state_without_a_measure_has_bounds(
    sf: Cluster, text: dict[str, Any], *, is_exact: bool
) -> None:
    query = QueryText({"n": "count(*)"}, window_s=60.0, lateness_s=60.0, **text)
    state = explain(sf, QuerySpec("", ("s5",), query)).state
    assert 0 < state.least <= state.most
    assert (state.least == state.most) is is_exact


def test_without_an_active_node_there_is_no_place(sf: Cluster) -> None:
    sf.nodes.update(active=False)
    assert explain(sf, QuerySpec("", ("s0",), TEXT)).place is None
    with pytest.raises(Invalid) as refusal:
        explain(sf, QuerySpec("", ("nowhere",), TEXT))
    assert set(refusal.value.fields) == {"streams"}
