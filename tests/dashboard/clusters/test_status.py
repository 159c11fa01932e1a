"""The state of a cluster's application in words."""

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from dashboard.clusters.status import FIRST_FIGURES, state_title
from tests.support.cluster import placed, small_cluster

WORDLESS = (Cluster.State.RUNNING, Cluster.State.STOPPED)


@pytest.mark.parametrize("state", [state for state in Cluster.State if state not in WORDLESS])
def test_every_other_state_has_a_title_and_its_detail_is_a_sentence(state: Cluster.State) -> None:
    title, cause = state_title(Cluster(state=state, state_detail="the driver has ended 3 times"))
    assert title
    assert cause.startswith("The driver has ended 3 times.")


def test_a_starting_cluster_has_the_time_of_its_first_figures() -> None:
    assert state_title(Cluster(state="starting"))[1] == FIRST_FIGURES


def test_the_page_of_a_new_cluster_leads_to_its_first_stream_and_query(
    operator: Actor, operating: Client, viewing: Client
) -> None:
    cluster = small_cluster(operator, stream_count=0)
    declare, submit = "/clusters/sf/streams/new/", "/clusters/sf/queries/new/"
    assert f'primary" href="{declare}"' in operating.get("/clusters/sf/").content.decode()
    assert declare not in viewing.get("/clusters/sf/").content.decode()
    cluster.delete()
    cluster = small_cluster(operator)
    assert f'primary" href="{submit}"' in operating.get("/clusters/sf/").content.decode()
    placed(operator, cluster, {"q": ["s0"]})
    content = operating.get("/clusters/sf/").content.decode()
    assert f'primary" href="{submit}"' not in content
