"""Scenarios of a demo cluster through the API."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.callers import get, post, scripted

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_scenario_is_started_listed_and_ended(operator: Actor, sf: Cluster) -> None:
    client = scripted(operator)
    assert get(client, "/clusters/sf/scenarios").json() == {"kinds": [], "scenarios": []}
    assert post(client, "/clusters/sf/scenarios/rush_hour", {}).json()["code"] == "not_a_demo"
    Cluster.objects.filter(pk=sf.pk).update(demo="sf", desired="running")
    assert len(get(client, "/clusters/sf/scenarios").json()["kinds"]) == 9
    answer = post(client, "/clusters/sf/scenarios/node_lost", {"minutes": 5, "node": 1})
    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert (row["kind"], row["node"], row["ended_at"]) == ("node_lost", 1, None)
    ended = post(client, f"/clusters/sf/scenarios/{row['id']}/end", {})
    assert ended.status_code == 200, ended.content
    assert ended.json()["ended_by"] == operator.name
    (listed,) = get(client, "/clusters/sf/scenarios").json()["scenarios"]
    assert listed["ended_at"] == ended.json()["ended_at"]
    again = post(client, f"/clusters/sf/scenarios/{row['id']}/end", {})
    assert (again.status_code, again.json()["code"]) == (409, "scenario_ended")
