"""The state of a cluster's application in words."""

import pytest

from controlplane.models import Cluster
from dashboard.clusters.status import FIRST_FIGURES, state_title

WORDLESS = (Cluster.State.RUNNING, Cluster.State.STOPPED)


@pytest.mark.parametrize("state", [state for state in Cluster.State if state not in WORDLESS])
def test_every_other_state_has_a_title_and_its_detail_is_a_sentence(state: Cluster.State) -> None:
    title, cause = state_title(Cluster(state=state, state_detail="the driver has ended 3 times"))
    assert title
    assert cause.startswith("The driver has ended 3 times.")


def test_a_starting_cluster_has_the_time_of_its_first_figures() -> None:
    assert state_title(Cluster(state="starting"))[1] == FIRST_FIGURES
