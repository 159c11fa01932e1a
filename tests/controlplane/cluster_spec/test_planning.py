"""A plan for a described cluster is the plan that a proposal would have; no database is asked."""

import pytest

from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.planning import PlannedCluster, plan_for, snapshot_of
from controlplane.cluster_spec.text import parse_description
from controlplane.errors import Conflict, Invalid
from controlplane.planning.measures import measures
from controlplane.plans.plan import Plan, task_moves
from tests.support.descriptions import SMALL, small, soon


def planned(
    description: ClusterDescription, planner: str, algorithm: str, **given: float
) -> PlannedCluster:
    return plan_for(description, planner, algorithm, given, lambda _: None)


def targets(found: PlannedCluster) -> dict[str, int]:
    """Return the node to which each query moves, by its name."""
    moves = task_moves(Plan(found.computed.actions))
    return {text.object: move.target for text, move in zip(found.texts, moves, strict=True)}


def test_a_placement_moves_what_is_placed_and_places_what_is_not() -> None:
    """Only active nodes are used, and the measures are those of all queries at their new nodes."""
    found = planned(small(), "placement", "mms", nu=1.0)
    assert set(found.placed) == {"d"}
    after = {"a": 0, "b": 0, "c": 1} | dict(found.placed)
    after |= targets(found)
    assert set(after) == {"a", "b", "c", "d"}
    assert set(after.values()) <= {0, 1}
    placed = small().model_copy(update={"placement": small().placement | after})
    counted = measures(snapshot_of(placed))
    assert counted.keys() == found.computed.after.keys()
    for name, value in counted.items():
        assert value == pytest.approx(found.computed.after[name]), name
    assert found.bounds["replication_factor"] <= found.computed.after["replication_factor"] + 1e-9


def test_a_plan_leaves_alone_what_is_excluded() -> None:
    """Until it expires; what has no node yet gets one all the same."""
    moved = set(targets(planned(small(), "placement", "mms", nu=1.0)))
    assert moved
    text = SMALL + f"exclusions: [{{kind: query, subject: {min(moved)}, until: SOON, reason: x}}]\n"
    excluded = planned(parse_description(text.replace("SOON", soon())), "placement", "mms", nu=1.0)
    assert set(targets(excluded)) == moved - {min(moved)}
    assert set(excluded.placed) == {"d"}
    over = parse_description(text.replace("SOON", "2020-01-01T00:00:00Z"))
    assert set(targets(planned(over, "placement", "mms", nu=1.0))) == moved


def test_a_shielded_stream_is_named_by_its_id() -> None:
    stream = "{kind: stream, subject: flow, until: SOON, reason: x}"
    text = SMALL + f"exclusions: [{stream}]\n".replace("SOON", soon())
    snapshot = snapshot_of(parse_description(text))
    assert snapshot.excluded == [("stream", 2)]
    assert ["b", [2]] in [[name, reads] for _, name, _, reads in snapshot.queries]


def test_a_migration_spreads_the_tasks_by_their_measured_work() -> None:
    """Of a stream that nodes do not receive for other queries."""
    each = "[9, 1, 1, 1, 1, 1, 1, 1]"
    measured = f"  measured: {{evaluations_per_s: {each}, state_bytes: {each}}}"
    text = SMALL.replace(
        "[level, flow]\n  tasks: 8\n", f"['no']\n  tasks: 8\n{measured}\n"
    ).replace("declared_rate: 10", "declared_rate: 80")
    found = planned(parse_description(text), "migration", "single_step", tau=0.2)
    moves = task_moves(Plan(found.computed.actions))
    assert moves
    assert {text.object for text in found.texts} == {"e"}
    assert found.computed.predicted["bytes"] == sum(move.bytes for move in moves)
    assert found.computed.predicted["bytes"] >= found.bounds["bytes"]
    assert found.computed.after["imbalance"] < found.computed.before["imbalance"]


def test_what_cannot_be_planned_says_why() -> None:
    with pytest.raises(Conflict, match="No node"):
        planned(parse_description(SMALL.replace("capacity: 100", "capacity: 100, active: false")),
                "placement", "mms")  # fmt: skip
    with pytest.raises(Invalid) as refused:
        planned(small(), "placement", "nonsense")
    assert list(refused.value.fields) == ["algorithm"]
    text = "weir: 1\ncluster: {slug: x, name: x}\nnodes: [{index: 0, name: n}]\n"
    with pytest.raises(Conflict, match="No query"):
        planned(parse_description(text), "placement", "mms")
