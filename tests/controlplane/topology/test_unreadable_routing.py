"""Routing in Redis that cannot be read: no batch runs with it, and it is written again."""

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from controlplane.connections import redis_client
from controlplane.models import Cluster
from controlplane.topology import publishing
from controlplane.topology.rows import current_table
from controlplane.wire import keys
from controlplane.wire.errors import RoutingMissing
from controlplane.wire.foreign.entries import EntryLocation, skipped_entries
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import actor, small_cluster
from workers.pipeline.routing.table_cache import TableCache

pytestmark = pytest.mark.django_db(transaction=True)
ODD: Final = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([
        b"{}", b"null", b"[" * 100_000, b"9" * 5000, b'{"version":1e400,"ops":[]}',
        b'{"version":1,"ops":[{"op":"no such"}]}', b'{"version":7,"ops":[]}',
        b'{"version":1,"ops":[{"op":"remove_query","query":99}]}',
    ]),
)  # fmt: skip


@pytest.fixture
def sf(redis_url: str, transactional_db: None) -> Cluster:
    """A small cluster with published routing."""
    return small_cluster(actor())


@given(text=ODD)
@settings(
    max_examples=20, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
def test_a_delta_that_cannot_be_read_is_written_again(sf: Cluster, text: bytes) -> None:
    """Until then the driver continues with the version before, which the cluster's page shows."""
    client, newest = redis_client(), current_table(sf.pk)
    whole = client.get(keys.route_delta_key("sf", newest.version))
    client.set(keys.route_delta_key("sf", newest.version), text)
    before = newest.version - 1
    try:
        known = TableCache(client, "sf")
        try:
            read_table(client, "sf", newest.version)
        except RoutingMissing:
            assert known.newest_version(before) == before
            assert EntryLocation.ROUTING in {row.place for row in skipped_entries(client, "sf")}
        assert publishing.heal(sf) is False
        assert TableCache(client, "sf").newest_version(before) == newest.version or (
            client.get(keys.route_delta_key("sf", newest.version)) == text
        )
    finally:
        client.set(keys.route_delta_key("sf", newest.version), whole or b"")
    assert read_table(client, "sf", newest.version) == newest


@pytest.mark.parametrize("text", [b"", b"x", b"9" * 5000, b"1e400"])
def test_a_pointer_that_is_no_version_is_written_again(sf: Cluster, text: bytes) -> None:
    client, newest = redis_client(), current_table(sf.pk)
    client.set(keys.route_latest_key("sf"), text)
    assert not latest_version(client, "sf")
    assert publishing.heal(sf) is True
    assert latest_version(client, "sf") == newest.version
    assert read_table(client, "sf", newest.version) == newest


def test_a_broken_table_of_a_failing_cluster_is_published_again(sf: Cluster) -> None:
    client, newest = redis_client(), current_table(sf.pk)
    publishing.republish(sf)
    client.set(keys.route_snapshot_key("sf", newest.version), b"x")
    with pytest.raises(RoutingMissing):
        read_table(client, "sf", newest.version)
    Cluster.objects.update(state=Cluster.State.CRASH_LOOP)
    sf.refresh_from_db()
    publishing.heal(sf)
    assert read_table(client, "sf", newest.version) == newest
