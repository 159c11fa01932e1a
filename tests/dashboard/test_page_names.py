"""Every whole page of the URL table is a page of the navigation, so tests and pictures have it."""

from django.test import Client

from controlplane.access.roles import Actor
from tests.controlplane.api.authorisation.addresses import accepts_get, pages
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made
from tests.support.api_world import address_of, rich_cluster
from tests.support.pages import is_document, page_names

# Sent to browsers that have no session, or to another site.
_OUTSIDE = ("sso", "sso-callback", "logout", "lab-html")


def test_every_document_is_a_known_page(operator: Actor) -> None:
    cluster = rich_cluster(operator)
    client: Client = browser_of(made.actor("admin"))
    missing = [
        address.name
        for address in pages()
        if address.method == "get"
        and address.name not in page_names()
        and address.name not in _OUTSIDE
        and accepts_get(address.path)
        and is_document(client, address_of(address.path, cluster))
    ]
    assert missing == []
