"""Several planners on one snapshot: each candidate is a proposal, and one is chosen."""

import time
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import Cluster, Comparison, Proposal, Snapshot, Stream
from controlplane.proposals import comparisons, computation, decisions, requests
from controlplane.proposals.comparison_table import compared, comparisons_listing
from controlplane.proposals.comparisons import PlannerRequest
from tests.support.cluster import placed_split
from tests.support.execution import prepared_scattered

pytestmark = pytest.mark.django_db(transaction=True)

TWO = [("placement", "mms", {}), ("placement", "off_rand", {"seed": 3})]


@pytest.fixture
def cluster(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve scattered queries on three streams."""
    return prepared_scattered(operator, sf)


def computed(comparison: Comparison) -> list[Proposal]:
    for one in comparison.candidates.order_by("pk"):
        computation.compute(one.pk)
    return list(comparison.candidates.order_by("pk"))


def test_all_are_computed_on_the_same_snapshot(operator: Actor, cluster: Cluster) -> None:
    """Whatever happens to the cluster between the computing of one and the next."""
    comparison = comparisons.compare(operator, cluster, TWO)
    first, second = comparison.candidates.order_by("pk")
    computation.compute(first.pk)
    Stream.objects.update(rate=77.0)
    computation.compute(second.pk)
    rows = [Proposal.objects.get(pk=one.pk) for one in (first, second)]
    assert [one.state for one in rows] == ["ready", "ready"]
    assert {one.snapshot_row for one in rows} == {comparison.snapshot_row}
    assert Snapshot.objects.count() == 1
    assert rows[0].seal != rows[1].seal


def test_the_table_has_what_each_takes_and_brings(operator: Actor, cluster: Cluster) -> None:
    comparison = comparisons.compare(operator, cluster, TWO)
    table = compared(comparison)
    assert table.computing == 2
    assert not any(one.has_plan or one.pareto for one in table.candidates)
    rows = computed(comparison)
    table = compared(comparison)
    assert table.computing == 0
    assert table.replication_factor == rows[0].before["replication_factor"]
    for row, one in zip(rows, table.candidates, strict=True):
        assert one.proposal == row.pk
        assert (one.actions, one.seal) == (len(row.actions), row.seal)
        assert one.imbalance == row.after["imbalance"]
        assert one.bounds == row.bounds
        assert one.computed_s is not None
        assert one.steps is not None
    assert any(one.pareto for one in table.candidates)


def test_candidates_with_other_slack_share_the_snapshot(operator: Actor, cluster: Cluster) -> None:
    """The slack is the candidate's own; with none, no node hosts more than its share."""
    asked = [("placement", "mms", {"nu": nu}) for nu in (0.0, 3.0)]
    rows = computed(comparisons.compare(operator, cluster, asked))
    assert rows[0].after["max_load"] == 3
    assert rows[1].after["max_load"] > 3
    assert Snapshot.objects.count() == 1


def test_several_budgets_are_a_curve(operator: Actor, cluster: Cluster) -> None:
    """Bytes against what they bring: each level is a plan of its own, within it."""
    levels: list[dict[str, Any]] = [{"moves": 2}, {"moves": 4}, {}]
    comparison = comparisons.compare(operator, cluster, TWO[:1], levels)
    rows = computed(comparison)
    assert [len(row.actions) for row in rows][:2] <= [2, 4]
    assert len(rows[2].actions) > 4
    first = rows[0]
    assert first.predicted["left_out"] == len(rows[2].actions) - len(first.actions)
    assert first.predicted["budget"]["limits"] == {"moves": 2}
    assert first.parameters["budget"] == {"moves": 2}
    table = compared(comparison)
    assert [one.budget for one in table.candidates] == levels
    assert table.candidates[0].proven


def test_one_is_approved_and_the_others_are_superseded(
    operator: Actor, approver: Actor, cluster: Cluster
) -> None:
    """Also those that are computing still, and they stay so when their worker is done."""
    comparison = comparisons.compare(operator, cluster, [*TWO, ("placement", "mms", {"nu": 2.0})])
    first, second, third = comparison.candidates.order_by("pk")
    for one in (first, second):
        computation.compute(one.pk)
    other = requests.request(operator, cluster, "mms", {})
    first.refresh_from_db()
    decisions.approve(approver, first, first.seal)
    computation.compute(third.pk)
    states = {one.pk: one.state for one in Proposal.objects.all()}
    assert states == {
        first.pk: "approved", second.pk: "superseded", third.pk: "superseded",
        other.pk: "computing",
    }  # fmt: skip


def test_one_or_all_can_be_cancelled(operator: Actor, cluster: Cluster) -> None:
    comparison = comparisons.compare(operator, cluster, [*TWO, ("placement", "mms", {"nu": 2.0})])
    first, second, _ = comparison.candidates.order_by("pk")
    computation.compute(first.pk)
    decisions.cancel(operator, second)
    assert comparisons.cancel(operator, comparison, "too slow") == 1
    assert comparisons.cancel(operator, comparison) == 0
    states = comparison.candidates.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["ready", "rejected", "rejected"]


def test_planners_of_every_kind_are_compared(operator: Actor, cluster: Cluster) -> None:
    placed_split(operator, cluster)
    asked = [
        PlannerRequest("placement", "mms", {}),
        PlannerRequest("migration", "single_step", {"tau": 0.2}),
    ]
    comparison = comparisons.compare(operator, cluster, asked)
    rows = computed(comparison)
    assert [(row.planner, row.state) for row in rows] == [
        ("placement", "ready"), ("migration", "no better plan"),
    ]  # fmt: skip
    assert [row.pareto for row in compared(comparison).candidates] == [True, False]


def test_what_is_asked_twice_is_computed_once(operator: Actor, cluster: Cluster) -> None:
    comparison = comparisons.compare(
        operator, cluster, [TWO[0], TWO[0]], [{"moves": 1}, {"moves": 1}]
    )
    assert comparison.candidates.count() == 1


@pytest.mark.parametrize(
    ("asked", "budget", "field"),
    [
        ([], None, "asked"),
        ([("placement", "mms", {"nu": at / 10}) for at in range(25)], None, "asked"),
        ([("placement", "nonsense", {})], None, "algorithm"),
        (TWO, {"bites": 3}, "budget"),
    ],
)
def test_what_cannot_be_compared_leaves_nothing_behind(
    operator: Actor, cluster: Cluster, asked: Any, budget: Any, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        comparisons.compare(operator, cluster, asked, budget)
    assert field in refused.value.fields
    assert not Comparison.objects.exists()
    assert not Proposal.objects.exists()


def test_the_newest_is_listed_first(operator: Actor, cluster: Cluster) -> None:
    pks = [
        Comparison.objects.create(
            cluster=cluster, requested_by=operator.name, requested_at=timezone.now()
        ).pk
        for _ in range(3)
    ]
    assert [row.pk for row in comparisons_listing(cluster).page.rows] == pks[::-1]


def test_workers_compute_them_with_their_tasks(
    operator: Actor, cluster: Cluster, celery_worker: None
) -> None:
    """Each candidate is a task of its own on the broker."""
    comparison = comparisons.compare(operator, cluster, TWO)
    assert _all_ready(comparison)


def _all_ready(comparison: Comparison) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not comparison.candidates.exclude(state="ready").exists():
            return True
    return False
