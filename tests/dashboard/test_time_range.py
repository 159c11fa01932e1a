"""Time ranges of query strings."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.models import Cluster
from dashboard.range_parameters import fitting_name
from dashboard.time_range import DEFAULT, RANGES, time_range_of
from tests.support.series import add_measures

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_named_range_ends_now() -> None:
    span = time_range_of({"range": "1h"}, NOW)
    assert (span.end, span.end - span.start, span.live) == (NOW, RANGES["1h"], True)


def test_a_fixed_range_is_reproduced_by_its_own_query_string() -> None:
    """Who sends the URL to a colleague sends the view."""
    span = time_range_of({"from": "2026-11-20T10:00:00+00:00", "to": "2026-11-20T11:00"}, NOW)
    parts = dict(part.split("=") for part in span.query.split("&"))
    assert time_range_of(parts, NOW) == span
    assert not span.live


@pytest.mark.parametrize(
    "values",
    [{"range": "1y"}, {"from": "x"}, {"from": "9" * 30}, {"from": "2027-01-01"}, {"to": "5"}],
)
def test_nonsense_gives_the_default_range(values: dict[str, str]) -> None:
    assert time_range_of(values, NOW).name == DEFAULT


@pytest.mark.django_db
def test_the_range_of_a_young_cluster_is_no_longer_than_its_data() -> None:
    now = timezone.now()
    cluster = Cluster.objects.create(slug="young", name="Young")
    assert fitting_name(cluster, now, "30m") == "30m"
    add_measures(cluster, now - timedelta(minutes=4), {"latency_p95": 100.0}, 10)
    assert fitting_name(cluster, now, "30m") == "5m"
    add_measures(cluster, now - timedelta(minutes=29), {"latency_p95": 100.0}, 10)
    assert fitting_name(cluster, now, "30m") == "30m"
