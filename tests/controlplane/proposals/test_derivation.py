"""A proposal without some of its moves is a proposal of its own, on the same snapshot."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.models import AuditEntry, Cluster, Proposal
from controlplane.planning.measures import measures
from controlplane.plans.plan import seal_of
from controlplane.proposals import comparisons, computation, decisions, derivation, requests
from controlplane.proposals.executions import progression
from tests.support.execution import (
    carried_out,
    moves_of,
    nodes_of,
    prepared_plan,
    prepared_scattered,
)

Asking = list[tuple[str, str, dict[str, Any]]]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def base(operator: Actor, sf: Cluster) -> Proposal:
    """A ready plan for twelve scattered queries."""
    return prepared_plan(operator, prepared_scattered(operator, sf))


def test_it_is_measured_priced_and_sealed_anew(operator: Actor, base: Proposal) -> None:
    derived = derivation.without(operator, base, [0, 2])
    assert (derived.state, derived.origin, derived.base) == ("ready", "derived", base)
    kept = {move.query for at, move in enumerate(moves_of(base)) if at not in (0, 2)}
    assert {move.query for move in moves_of(derived)} == kept
    found = measures(base.snapshot, derived.plan)
    assert derived.after == found
    assert derived.imbalance_after[-1] == pytest.approx(found["imbalance"], abs=1e-5)
    assert derived.predicted["moves"] == derived.rollback_cost["actions"] == len(base.actions) - 2
    assert derived.predicted["dropped"] == 2
    assert derived.snapshot_row == base.snapshot_row
    assert derived.snapshot_row is not None
    assert derived.seal == seal_of(derived.plan, derived.snapshot_row.digest) != base.seal
    noted = AuditEntry.objects.get(action="proposal.derive")
    assert noted.after["removed"] == [base.plan[place].action_json() for place in (0, 2)]
    base.refresh_from_db()
    assert base.state == "ready"


def test_it_is_carried_out_as_any_other(operator: Actor, approver: Actor, base: Proposal) -> None:
    dropped = moves_of(base)[1]
    before = nodes_of()
    derived = derivation.without(operator, base, [1])
    decisions.approve(approver, derived, derived.seal)
    progression.advance(derived.pk)
    from_step = carried_out(derived)
    assert (derived.state, from_step.done) == ("done", len(base.actions) - 1)
    assert nodes_of()[dropped.query] == before[dropped.query]


def test_the_base_is_superseded_when_the_derived_one_is_approved(
    operator: Actor, approver: Actor, base: Proposal
) -> None:
    """And all that else came of it, also by several steps."""
    derived = derivation.without(operator, base, [0])
    again = derivation.without(operator, derived, [0])
    other = derivation.without(operator, base, [1])
    assert again.predicted["dropped"] == 2
    decisions.approve(approver, again, again.seal)
    states = [Proposal.objects.get(pk=one.pk).state for one in (base, derived, other, again)]
    assert states == ["superseded", "superseded", "superseded", "approved"]


def test_approving_the_base_supersedes_what_was_derived(
    operator: Actor, approver: Actor, base: Proposal
) -> None:
    derived = derivation.without(operator, base, [0])
    decisions.approve(approver, base, base.seal)
    derived.refresh_from_db()
    assert derived.state == "superseded"


def test_derived_from_a_candidate_it_stands_against_the_others(
    operator: Actor, approver: Actor, base: Proposal
) -> None:
    asked: Asking = [("placement", "mms", {}), ("placement", "off_rand", {})]
    comparison = comparisons.compare(operator, base.cluster, asked)
    for one in comparison.candidates.all():
        computation.compute(one.pk)
    first, second = comparison.candidates.order_by("pk")
    derived = derivation.without(operator, first, [0])
    decisions.approve(approver, derived, derived.seal)
    second.refresh_from_db()
    base.refresh_from_db()
    assert (second.state, base.state) == ("superseded", "ready")


def test_one_asked_for_anew_is_no_rival(operator: Actor, approver: Actor, base: Proposal) -> None:
    """It is a later plan of the cluster as it is by then."""
    anew = requests.request_again(operator, base)
    computation.compute(anew.pk)
    anew.refresh_from_db()
    decisions.approve(approver, anew, anew.seal)
    base.refresh_from_db()
    assert base.state == "ready"


@pytest.mark.parametrize("places", [[], [-1], [10_000]])
def test_places_must_be_those_of_moves(operator: Actor, base: Proposal, places: list[int]) -> None:
    with pytest.raises(Invalid):
        derivation.without(operator, base, places)


def test_something_must_be_left(operator: Actor, base: Proposal) -> None:
    with pytest.raises(Invalid):
        derivation.without(operator, base, range(len(base.actions)))


def test_only_a_ready_one_is_changed(operator: Actor, approver: Actor, base: Proposal) -> None:
    decisions.approve(approver, base, base.seal)
    with pytest.raises(Conflict) as refused:
        derivation.without(operator, base, [0])
    assert refused.value.code == "not_ready"
