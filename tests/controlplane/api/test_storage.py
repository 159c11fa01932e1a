"""The API and the page of storage and retention."""

import pytest
from django.test import Client

from controlplane.background.retention import sizes
from controlplane.background.retention.kinds import KINDS
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db


def test_members_see_sizes_and_retention(redis_url: str) -> None:
    sizes.forget()
    client = Client()
    client.force_login(actor("viewer").user)  # type: ignore[arg-type]
    storage = client.get("/api/v1/storage").json()
    assert storage["redis"]["used"] > 0
    assert any(table["name"] == "controlplane_proposal" for table in storage["tables"])
    assert [kind["name"] for kind in storage["retention"]] == [kind.name for kind in KINDS]
    assert all("{" not in kind["kept"] for kind in storage["retention"])
    page = client.get("/system/storage/").content.decode()
    for kind in KINDS:
        assert f'data-retention="{kind.name}"' in page
