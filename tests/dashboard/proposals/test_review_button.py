"""The button of a waiting proposal is primary only if its plan ends what is exceeded."""

import pytest

from dashboard.templatetags.plans import review_button
from tests.support import cluster as made
from tests.support.execution import ready, scattered
from tests.support.policies import set_policy
from tests.support.watching import reachable


@pytest.mark.django_db(transaction=True)
def test_a_plan_that_leaves_a_limit_exceeded_has_a_plain_button() -> None:
    by = made.actor("operator")
    cluster = made.small_cluster(by)
    set_policy(cluster, watch_imbalance=1.0, watch_load=100.0)
    reachable(cluster, 1.0)
    proposal = ready(by, scattered(by, cluster))
    proposal.before |= {"replication_factor": 2.2}
    proposal.after |= {"replication_factor": 1.9}
    proposal.save()
    button = review_button(proposal.pk)
    assert "primary" not in button
    assert "lowers replication factor to 1.90, limit 1.20 stays exceeded" in button
    proposal.after |= {"replication_factor": 1.1}
    proposal.save()
    assert "primary" in review_button(proposal.pk)
