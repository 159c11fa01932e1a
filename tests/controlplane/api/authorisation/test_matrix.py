"""Every caller at every address: let in exactly where the rules say so.

Of the roles, the least that is let in and the greatest that is refused try an address by day,
every role by night.
"""

from collections.abc import Iterable
from typing import Any, Final

import pytest
from django.db import transaction
from django.test import Client
from django.utils.module_loading import import_string

from controlplane.access.roles import PRODUCER, ROLES, Actor
from controlplane.models import Cluster
from tests.controlplane.api.authorisation import rules
from tests.controlplane.api.authorisation.addresses import Address, accepts_get, operations, pages
from tests.controlplane.api.callers import JSON, granted, scripted, user_of
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor, confirmed
from tests.support.nightly import NIGHTLY

pytestmark = pytest.mark.nightly("requests", by_day=True)
DENIED: Final = (401, 403)
OUTSIDE: Final = ("anonymous", "nobody", "foreign")
# They end the caller's own session: tests/controlplane/access/logins has their tests.
ENDING: Final = ("logout", "session-end", "sessions-end", "password-change", "account")
_QUERIES: Final = {"clusters_lifecycle_remove_cluster": "?confirm=x"}


@pytest.fixture
def world(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a row of every kind; a feed of events ends at once."""
    monkeypatch.setattr("controlplane.api.queries.feed.LONGEST_S", 0.0)
    return rich_cluster(actor("operator"))


@pytest.fixture
def people(world: Cluster) -> dict[str, Actor]:
    """Somebody of each role, somebody without one, and an admin of another cluster alone."""
    other = Cluster.objects.create(slug="nyc", name="NYC")
    roles = {role: actor(role, f"the-{role}") for role in ROLES}
    return {"nobody": actor("", "nobody"), "foreign": granted("admin", other, "foreign"), **roles}


def may(caller: str, audience: str) -> bool:
    """Return True if the rule lets a caller in."""
    if audience == "anyone" or caller == "anonymous":
        return audience == "anyone"
    if audience == "person" or caller == "nobody":
        return audience == "person"
    if audience == "session":
        return False
    if audience == "member" or caller == "foreign":
        return audience in ("member", "any admin")
    return ROLES.index(caller) >= ROLES.index(audience.removeprefix("any "))


def deciding_callers(audience: str) -> list[str]:
    """Return who tries an address by day: roles between the deciding ones are compared by rank."""
    if NIGHTLY:
        return [*OUTSIDE, *ROLES]
    let_in = [role for role in ROLES if may(role, audience)]
    refused = [role for role in ROLES if role not in let_in]
    return [*OUTSIDE, *refused[-1:], *let_in[:1]]


def test_every_address_has_a_rule() -> None:
    """A new operation, page or socket message is not open by mistake."""
    assert {address.name for address in operations()} == set(rules.OPERATIONS)
    known = {name.removesuffix(":post") for name in rules.PAGES}
    assert {address.name for address in pages()} == known
    sockets = import_string("dashboard.consumers.websocket_urlpatterns")
    assert {str(pattern.pattern) for pattern in sockets} == set(rules.SOCKETS)
    kinds = ("LiveConsumer", "ClusterConsumer", "FleetConsumer")
    own = [vars(import_string(f"dashboard.consumers.{kind}")) for kind in kinds]
    messages = {
        name for each in own for name in each if not name.startswith("_") and callable(each[name])
    }
    others = {"connect", "disconnect", "receive", "authorize", "missed", "dispatch"}
    assert messages - others == set(rules.SOCKET_MESSAGES)


def test_operations_let_in_whom_the_rules_name(world: Cluster, people: dict[str, Actor]) -> None:
    clients = {name: scripted(person) for name, person in people.items()}
    clients["anonymous"] = Client()
    faults = []
    for address in operations():
        path = address_of(address.path, world) + _QUERIES.get(address.name, "")
        audience = rules.OPERATIONS[address.name]
        for caller in deciding_callers(audience):
            status = _status(clients[caller], address, path)
            if fault := _fault(caller, audience, status, address):
                faults.append(fault)
    assert not faults, "\n".join(faults)


def test_a_token_of_a_producer_appends_and_does_nothing_else(world: Cluster) -> None:
    """Whatever its user may: here everything."""
    client = scripted(actor("admin"), role=PRODUCER, cluster=world)
    let_in = {
        address.name
        for address in operations()
        if _status(client, address, address_of(address.path, world)) not in (401, 403, 404)
    }
    assert let_in == {"streams_records_append_records", "streams_stream_schemas_get_schema"}


def test_pages_let_in_whom_the_rules_name(world: Cluster, people: dict[str, Actor]) -> None:
    clients = {name: _browser(person) for name, person in people.items()}
    clients["anonymous"] = Client()
    faults = []
    for address in _with_rules(pages()):
        path = address_of(address.path, world)
        for caller in deciding_callers(_rule(address)):
            status = _status(clients[caller], address, path)
            if fault := _fault(caller, _rule(address), status, address):
                faults.append(fault)
    assert not faults, "\n".join(faults)


def _with_rules(addresses: Iterable[Address]) -> Iterable[Address]:
    """Yield GET of pages, and POST of actions and of pages that have a rule for it."""
    for address in addresses:
        is_page = accepts_get(address.path)
        accepted = (
            is_page
            if address.method == "get"
            else (not is_page or f"{address.name}:post" in rules.PAGES)
        )
        if accepted and address.name not in ENDING:
            yield address


def _rule(address: Address) -> str:
    return rules.PAGES.get(f"{address.name}:{address.method}") or rules.PAGES[address.name]


def _status(client: Client, address: Address, path: str) -> Any:
    """Return the status of an answer, "login" for a redirect there; what it changed is reverted."""
    with transaction.atomic():
        if address.path.startswith("/api/"):
            response = client.generic(address.method.upper(), path, address.body or "", JSON)
        else:
            response = getattr(client, address.method)(path)
        transaction.set_rollback(True)
    is_login = response.status_code == 302 and "/login" in response["Location"]
    return "login" if is_login else response.status_code


def _fault(caller: str, audience: str, status: Any, address: Address) -> str:
    """Return what is wrong with an answer, "" for nothing."""
    if may(caller, audience):
        wrong = status in (*DENIED, "login") or (status == 500)
    elif caller == "anonymous":
        wrong = status not in (401, "login")
    else:
        # An object of a cluster that the caller may not view does not exist for them.
        wrong = status != 403 and not (caller in OUTSIDE and status == 404)
    return f"{caller} {address.method} {address.name} ({audience}): {status}" if wrong else ""


def _browser(person: Actor) -> Client:
    client = Client()
    client.force_login(user_of(person))
    return confirmed(client)
