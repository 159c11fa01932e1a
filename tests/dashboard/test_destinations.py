"""Who sees the list of destinations, and what an admin of a cluster learns of the network."""

import pytest
from django.test import Client

from controlplane.access.roles import ADMIN
from controlplane.clusters.changes import set_log
from controlplane.errors import Invalid
from controlplane.models import Cluster
from tests.support.cluster import actor
from tests.support.destinations import list_destinations
from tests.support.rebinding import open_and_closed_port

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]


def test_admins_of_the_site_see_the_list(
    operating: Client, administering: Client, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_destinations(monkeypatch, "kafka://broker-1:9092")
    assert b"kafka://broker-1:9092" in administering.get("/system/").content
    assert b"kafka://broker-1:9092" not in operating.get("/system/").content


@pytest.mark.parametrize("scheme", ["redis", "kafka"])
def test_an_admin_of_a_cluster_learns_of_no_port(
    scheme: str, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(desired=Cluster.Desired.STOPPED)
    monkeypatch.setenv("WEIR_DESTINATIONS_LIST", f"{scheme}://10.0.0.0/8:1-65535")
    server, *ports = open_and_closed_port()
    told, by = set(), actor(ADMIN, "another")
    with server:
        for port in ports:
            with pytest.raises(Invalid) as refused:
                set_log(by, sf, f"{scheme}://127.0.0.1:{port}/0", 512)
            (text,) = refused.value.fields["log_url"]
            told.add(text.replace(str(port), "PORT"))
    assert told == {
        f"{scheme}://127.0.0.1:PORT is not in the list of the site (setting WEIR_DESTINATIONS): "
        "check the spelling, or let an administrator of the site add it"
    }
