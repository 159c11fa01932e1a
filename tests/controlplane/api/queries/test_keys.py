"""The keys of a query through the API."""

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.callers import get, scripted
from tests.support.cluster import placed_split
from tests.support.key_samples import sampled

pytestmark = pytest.mark.django_db(transaction=True)
KEYS = "/clusters/sf/queries/q/keys"


@pytest.fixture
def client(viewer: Actor, operator: Actor, sf: Cluster) -> Client:
    placed_split(operator, sf, "q", "key")
    return scripted(viewer)


def test_keys_loads_and_groupings(client: Client, sf: Cluster) -> None:
    sampled(sf.queries.get(name="q"), timezone.now())
    body = get(client, KEYS).json()
    assert body["keys"][0]["label"] == "taxi"
    assert list(body["keys"][0]["tasks"].values()) == [1.0]
    assert (body["distinct"], len(body["keys"])) == (301, 20)
    assert {row["name"] for row in body["groupings"] if row["in_use"]} == {"key"}
    assert [row["name"] for row in body["groupings"] if row["recommended"]] == [body["recommended"]]
    assert sum(body["groupings"][0]["loads"]) == pytest.approx(1.0)


@pytest.mark.parametrize("query", ["span_s=5", "span_s=601", "history_s=0", "history_s=1e9"])
def test_parameters_have_bounds(client: Client, query: str) -> None:
    assert get(client, f"{KEYS}?{query}").status_code == 422
    assert get(client, f"{KEYS}?span_s=60&history_s=86400").json()["span_s"] == 60
