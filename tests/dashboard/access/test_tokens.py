"""The page of one's own tokens."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import ApiToken, Cluster
from tests.support.cluster import confirmed

pytestmark = pytest.mark.nightly("pages")

GOOD = {"name": "nightly", "role": "operator", "cluster": "sf", "days": "30"}


def test_a_token_is_shown_once_and_works(operating: Client, sf: Cluster, operator: Actor) -> None:
    """On the answer to the form alone; the page has its last characters."""
    made = confirmed(operating).post("/tokens/make/", GOOD)
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    found = re.search(r'id="secret">(weir_[\w-]+)<', made.content.decode())
    assert found is not None
    row = tokens.token_of(found[1])
    assert row is not None
    assert (row.user, row.role, row.cluster) == (operator.user, "operator", sf)
    page = operating.get("/tokens/").content.decode()
    assert "nightly" in page
    assert found[1] not in page
    assert found[1][-4:] in page


def test_a_token_that_expires_has_a_mark(operating: Client, sf: Cluster) -> None:
    confirmed(operating).post("/tokens/make/", GOOD)
    assert re.search(r'class="chip (warn|bad)"', operating.get("/tokens/").content.decode()) is None
    for left, grade in ((timedelta(days=3), "warn"), (timedelta(days=-1), "bad")):
        ApiToken.objects.update(expires_at=timezone.now() + left)
        assert f'class="chip {grade}"' in operating.get("/tokens/").content.decode()


def test_what_is_wrong_is_told_at_its_field(operating: Client, sf: Cluster) -> None:
    confirmed(operating)
    for field, value in {"days": "x", "name": "", "cluster": "none", "role": "king"}.items():
        answer = operating.post("/tokens/make/", GOOD | {field: value})
        assert answer.status_code == 422
        told = re.findall(r'id="faults-(\w+)"[^>]*>([^<]+)<', answer.content.decode())
        assert [name for name, _ in told] == [field]
    assert not ApiToken.objects.exists()


def test_a_producer_gets_a_token_of_its_own(operating: Client, sf: Cluster) -> None:
    """The page says what it may; without a cluster it may nothing."""
    confirmed(operating)
    form = GOOD | {"role": "producer"}
    assert operating.post("/tokens/make/", form | {"cluster": ""}).status_code == 422
    made = operating.post("/tokens/make/", form)
    assert made.status_code == 201
    assert "POST /api/v1/clusters/sf/streams/…/records" in made.content.decode()
    assert '<span class="tag">producer</span>' in operating.get("/tokens/").content.decode()


def test_a_token_is_revoked_by_its_owner_alone(
    operating: Client, viewing: Client, sf: Cluster
) -> None:
    confirmed(operating).post("/tokens/make/", GOOD)
    token = ApiToken.objects.get()
    assert viewing.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    assert operating.get(f"/tokens/{token.pk}/revoke/").status_code == 405
    assert operating.post(f"/tokens/{token.pk}/revoke/").status_code == 302
    assert not ApiToken.objects.exists()
