"""Pages and their actions with extreme parameters and fields have no answer of 500 or above.

100 requests by day, 20,000 by night.
"""

import inspect
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, resolve

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.authorisation.addresses import Address, pages
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made
from tests.support import extremes
from tests.support.api_world import address_of
from tests.support.nightly import NIGHTLY
from tests.support.pages import page_world

# Requests of one test.
PART: Final = 500 if NIGHTLY else 100
PARTS: Final = 40 if NIGHTLY else 1
# Names in quotation marks by which a view may read what was sent, and those of lists and ranges.
NAMED: Final = re.compile(r'"([a-z_]{1,20})"')
COMMON: Final = ("page", "per_page", "filter", "q", "order", "from", "to", "range", "limit",
                 "cursor", "before", "name", "next")  # fmt: skip
# They end the session of the browser; the last is 503 while processes of Weir are missing.
APART: Final = {"logout", "login", "sessions-end", "session-end", "password-change", "readyz"}


@dataclass(frozen=True)
class Sent:
    """A request of a browser, and the fields of its form."""

    name: str
    method: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)


def names_of(path: str) -> Sequence[str]:
    """Return the names that the module of a page's view may read."""
    try:
        module = inspect.getmodule(inspect.unwrap(resolve(path).func))
    except Resolver404:
        return COMMON
    source = inspect.getsource(module) if module else ""
    return sorted({*NAMED.findall(source), *COMMON})


def generated(cluster: Cluster, count: int, seed: int) -> Iterator[Sent]:
    """Yield requests of every address in turn, the same in every run."""
    chance = random.Random(seed)
    addresses = [row for row in pages() if row.name not in APART]
    paths = {row: address_of(row.path, cluster) for row in addresses}
    names = {row: names_of(path) for row, path in paths.items()}
    for number in range(count):
        address = addresses[number % len(addresses)]
        yield one(address, paths[address], names[address], chance)


def one(address: Address, path: str, names: Sequence[str], chance: random.Random) -> Sent:
    """Return a request with up to six extreme values; seldom also in its path."""
    values = (*extremes.TEXTS, *extremes.TIMES, *extremes.TIMES)
    chosen = chance.sample(names, min(len(names), chance.choice((1, 2, 6))))
    fields = {name: chance.choice(values)[:5_000] for name in chosen}
    if chance.random() < 0.1:
        parts = path.split("/")
        place = chance.randrange(len(parts))
        parts[place] = quote(chance.choice(extremes.TEXTS)[:300], safe="")
        path = "/".join(parts)
    if address.method == "get":
        return Sent(address.name, "get", f"{path}?{urlencode(fields)}")
    return Sent(address.name, "post", path, fields)


@pytest.mark.nightly("requests", by_day=True)
@pytest.mark.both_databases
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_breaks(operator: Actor, part: int) -> None:
    page_world(operator)
    cluster = Cluster.objects.get()
    browsers = [browser_of(made.actor(role, f"the-{role}")) for role in ("admin", "operator")]
    requests = enumerate(generated(cluster, PART, part))
    faults = [answered(browsers[number % 2], request) for number, request in requests]
    assert not any(faults), "\n".join(filter(None, faults))


def answered(browser: Client, request: Sent) -> str:
    """Return the fault of an answer, "" if there is none; its effects are reverted."""
    browser.raise_request_exception = False
    with transaction.atomic():
        if request.method == "get":
            answer = browser.get(request.path)
        else:
            answer = browser.post(request.path, request.fields)
        transaction.set_rollback(True)
    if answer.status_code < 500:
        return ""
    info = getattr(answer, "exc_info", None)
    return f"{answer.status_code} {request}: {info[1]!r}"[:1_000] if info else str(request)
