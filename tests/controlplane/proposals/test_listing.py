"""The list of proposals by filter text."""

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, Proposal
from controlplane.pagination.filter_text import BadFilter
from controlplane.proposals.listing import ProposalFilters, proposals_listing
from tests.support import cluster as made


@pytest.fixture
def cluster(operator: Actor) -> Cluster:
    cluster = made.small_cluster(operator)
    for pk, state, algorithm, by, actions in (
        (1, "ready", "mms", "ann", 3), (2, "failed", "mms", "bob", None),
        (3, "done", "lp", "ann", 9), (4, "stale", "lp", "eve", 1), (5, "stale", "lp", "eve", 1),
    ):  # fmt: skip
        Proposal.objects.create(
            pk=pk, cluster=cluster, planner="placement", algorithm=algorithm, state=state,
            requested_by=by, requested_at=timezone.now(),
            error_code="out_of_memory" if state == "failed" else "",
            predicted={} if actions is None else {"actions": actions},
        )  # fmt: skip
    early = Proposal.objects.get(pk=4)
    Execution.objects.create(proposal=early, cluster=cluster, started_at=timezone.now())
    return cluster


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", [5, 4, 3, 2, 1]),
        ("state:open", [1]),
        ("state:failed,done", [3, 2]),
        ("planner:placement algorithm=lp by:ann", [3]),
        ("by:ann actions>3", [3]),
        ("actions<=3 id<4", [1]),
        ("error:memory", [2]),
        ("id<3", [2, 1]),
        ("requested>1h -by:ann -by:eve", [2]),
        ("bob", [2]),
        ('state:"ended early"', [4]),
        ("state:stale", [5, 4]),
    ],
)
def test_a_filter_text_selects_proposals(cluster: Cluster, text: str, numbers: list[int]) -> None:
    rows = proposals_listing(cluster, ProposalFilters(filter=text)).page.rows
    assert [row.pk for row in rows] == numbers


def test_the_fault_of_a_filter_has_its_place(cluster: Cluster) -> None:
    with pytest.raises(BadFilter) as fault:
        proposals_listing(cluster, ProposalFilters(filter="by:ann state:lost"))
    assert fault.value.data == {"fault": "value", "start": 7, "end": 17}
