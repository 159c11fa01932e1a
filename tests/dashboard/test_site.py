"""Pages of errors: with the navigation for those who may use it, without for others."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.models import Cluster

pytestmark = pytest.mark.nightly("pages")

NAVIGATION = b'<nav aria-label="Main">'


@pytest.mark.parametrize("path", ["/no/such/page/", "/clusters/none/", "/clusters/sf/nodes/99/"])
def test_an_unknown_address_has_the_navigation(operating: Client, sf: Cluster, path: str) -> None:
    answer = operating.get(path)
    assert answer.status_code == 404
    assert NAVIGATION in answer.content
    assert b"Page not found" in answer.content
    assert (b"There is no" in answer.content) == path.startswith("/clusters/")
    assert b"URLPattern" not in answer.content
    # Of a cluster that is known, its pages are there as well.
    assert (b'href="/clusters/sf/streams/"' in answer.content) == path.startswith("/clusters/sf/")


@pytest.mark.django_db
def test_others_learn_nothing_from_it(sf: Cluster) -> None:
    stranger = Client()
    stranger.force_login(User.objects.create_user("stranger"))
    for client in (Client(), stranger):
        answer = client.get("/no/such/page/")
        assert answer.status_code == 404
        assert NAVIGATION not in answer.content
        assert b"sf" not in answer.content


def test_parts_and_data_have_the_short_page(operating: Client, sf: Cluster) -> None:
    for headers in ({"HX-Request": "true"}, {"Accept": "application/json"}):
        answer = operating.get("/clusters/sf/nodes/99/", headers=headers)
        assert answer.status_code == 404
        assert NAVIGATION not in answer.content


def test_a_page_for_another_role_has_the_navigation(viewing: Client, sf: Cluster) -> None:
    answer = viewing.get("/clusters/sf/queries/new/")
    assert answer.status_code == 403
    assert NAVIGATION in answer.content
    assert b"Not allowed" in answer.content
