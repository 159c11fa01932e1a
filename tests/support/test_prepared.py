"""Prepared rows are those that the fixture would store, or the fixture stores them."""

import pytest
from django.db import transaction

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, Stream
from tests.support.cluster import actor, small_cluster
from tests.support.prepared import prepared

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(redis_url: str) -> Actor:
    return actor("operator")


def stored() -> list[object]:
    rows = Cluster.objects.values_list(), Stream.objects.values_list()
    return [*map(list, rows), list(AuditEntry.objects.order_by("pk").values_list())]


def test_rows_are_stored_again_without_a_call(operator: Actor) -> None:
    """Equal to those of the first time, of which a test has rolled back the transaction."""
    made: list[Cluster] = []

    def make() -> Cluster:
        made.append(small_cluster(operator))
        return made[-1]

    found = []
    for _ in range(2):
        with transaction.atomic():
            cluster = prepared("again", make)
            found.append((cluster.pk, stored()))
            transaction.set_rollback(True)
    assert found[0] == found[1]
    assert len(made) == 1


def test_the_fixture_stores_them_where_others_are_in_the_way(operator: Actor) -> None:
    def make() -> Cluster:
        return small_cluster(operator)

    with transaction.atomic():
        first = prepared("in the way", make).pk
        transaction.set_rollback(True)
    Cluster.objects.create(pk=first, slug="sf2", name="SF2", slots=1, routing_version=7)
    cluster = prepared("in the way", make)
    assert cluster.slug == "sf"
    assert Stream.objects.filter(cluster=cluster).count() == 6
    assert Cluster.objects.get(slug="sf2").routing_version == 7
