"""The cause behind the headline of each page, for disturbances of clusters of several kinds."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.explain import Cause
from controlplane.models import Alert
from controlplane.topology.split_nodes import set_split_capacity
from tests.support.disturbed import SCENARIOS, rush_hour

pytestmark = pytest.mark.django_db


def subject_of(cause: Cause) -> tuple[str, Any]:
    """Return the code of a cause with the name of what it is about."""
    names = {
        "hot_key": cause.key, "expensive_query": cause.query_name, "streams_rose": cause.count,
        "stream_rose": cause.stream_name,
    }  # fmt: skip
    return str(cause.code), names.get(str(cause.code), cause.node_name)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_entry_names_the_cause(operating: Client, operator: Actor, scenario: str) -> None:
    """Fleet, cluster, the disturbed node, a query on it, and the alert name the same cause."""
    disturbed, node, causes = SCENARIOS[scenario](operator, timezone.now())
    slug = disturbed.cluster.slug
    query = next(q for q in disturbed.queries if disturbed.host(q) == node)
    pages = {
        "fleet": reverse("fleet"),
        "cluster": reverse("cluster", args=[slug]),
        "node": reverse("node", args=[slug, node]),
        "query": reverse("query", args=[slug, query.pk]),
        "alert": reverse("alert", args=[slug, Alert.objects.get().pk]),
    }
    found = {}
    for name, url in pages.items():
        page = operating.get(url)
        context = page.context["attention"] if name == "fleet" else None
        headline = page.context["headline"] if context is None else context["headline"]
        found[name] = [subject_of(cause) for cause in headline.causes]
        assert "xplain" in page.content.decode(), f"{name} has no Explain"
    if len(causes) > 1:
        found = {name: sorted(rows) for name, rows in found.items()}
    assert found == dict.fromkeys(pages, causes)


def test_the_page_of_a_stream_names_the_cause(operating: Client, operator: Actor) -> None:
    """Where its split node has no room for the rate that it has since the rush hour began."""
    disturbed, _, causes = rush_hour(operator, timezone.now())
    cluster = disturbed.cluster
    set_split_capacity(operator, cluster, 100.0, emulated=True)
    url = reverse("stream", args=[cluster.slug, cluster.streams.get(name="belt-0").pk])
    headline = operating.get(url).context["headline"]
    assert headline.grade == "bad"
    assert [subject_of(cause) for cause in headline.causes] == causes
    assert headline.why.startswith("Likely cause: All streams have 3.0 times as many records")
