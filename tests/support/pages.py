"""Every whole page of the URL table, with an address in a cluster that has rows of each kind."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.test import Client

from controlplane.access.roles import Actor
from controlplane.lab.runs import all_experiments
from controlplane.models import Cluster, LabRun, Query
from dashboard.navigation import SITE_PAGES, cluster_pages
from tests.controlplane.api.authorisation.addresses import accepts_get, pages
from tests.dashboard.conftest import add_samples
from tests.support.api_world import address_of, rich_cluster
from tests.support.execution import ready, scattered

# Django Ninja has its view outside the URL table of the pages.
_API: Final = "/api/v1/docs"
# Pages that no section of the navigation has.
_OTHERS: Final = ("fleet", "cluster-import", "login", "account", "stuck-batch")
# A part of a page that belongs to a section.
_PARTS: Final = ("proposal-form",)
_DOCUMENT: Final = re.compile(rb"\s*<!doctype html", re.IGNORECASE)


@dataclass(frozen=True)
class PageAddress:
    """A page with a path in the cluster that `page_world` returns."""

    name: str
    path: str


def page_names() -> frozenset[str]:
    """Return the URL names of all whole pages, and of the forms that show one with its errors."""
    sections = (*cluster_pages(), *SITE_PAGES)
    named = {name for page in sections for name in (page.name, *page.details)}
    return frozenset(named.union(_OTHERS).difference(_PARTS))


def page_world(by: Actor) -> list[PageAddress]:
    """Create a running cluster with rows of each kind, and return an address of every page."""
    cluster = rich_cluster(by)
    scattered(by, cluster)
    waiting = ready(by, cluster)
    Cluster.objects.filter(pk=cluster.pk).update(desired="running", state="running")
    add_samples(cluster)
    planner, experiments = next(iter(all_experiments().items()))
    LabRun.objects.update(planner=planner, experiment=experiments[0].name)
    plain = Query.objects.get(cluster=cluster, name="q1")
    base = f"/clusters/{cluster.slug}"
    return [
        *_named(cluster, f"/lab/{planner}/{experiments[0].name}/"),
        PageAddress("waiting proposal", f"{base}/proposals/{waiting.pk}/"),
        PageAddress("query of one task", f"{base}/queries/{plain.pk}/"),
        PageAddress("api", _API),
    ]


def _named(cluster: Cluster, experiment: str) -> Iterator[PageAddress]:
    """Yield the pages of the navigation that accept GET."""
    known = page_names()
    for address in pages():
        if address.method != "get" or address.name not in known or not accepts_get(address.path):
            continue
        path = address_of(address.path, cluster)
        if address.name == "explain":
            path += "?subject=node:0"
        yield PageAddress(address.name, experiment if address.name == "lab-experiment" else path)


def is_document(client: Client, path: str) -> bool:
    """Return True if the answer to GET is a whole page of HTML, and no fragment or file."""
    answer = client.get(path)
    if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
        return False
    return _DOCUMENT.match(answer.content) is not None
