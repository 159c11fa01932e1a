"""Roles are checked before a body is read: those without the right send it for nothing.

Every operation and page is called by each caller whom its rule refuses (of the roles, by day the
greatest one), with the largest body that Weir takes, in each form that something in front of a view
could parse.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.authorisation import rules
from tests.controlplane.api.authorisation.addresses import Address, operations, pages
from tests.controlplane.api.authorisation.test_matrix import deciding_callers, may, people, world
from tests.controlplane.api.callers import JSON, scripted, user_of
from tests.support.api_world import address_of

__all__ = ["people", "world"]
FORM: Final = "application/x-www-form-urlencoded"
FILES: Final = "multipart/form-data; boundary=b"
# By day the one that Django also looks for files in.
FORMS: Final = [FILES, pytest.param(FORM, marks=pytest.mark.nightly("requests"))]
# Their body names the cluster that the caller has to administer: an admin of any may send one.
NAMED_IN_BODY: Final = frozenset(
    {
        "integrations_webhooks_make_webhook",
        "clusters_lifecycle_apply_cluster",
        "grant-set",
        "grant-revoke",
    }
)
REFUSED: Final = (401, 403, 404, "login")
WRITES: Final = ("post", "put", "patch", "delete")


class Body:
    """A body of the largest allowed size that counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        return b""

    def readline(self, size: int = -1) -> bytes:
        return self.read(size)


def send(client: Client, method: str, path: str, kind: str, **headers: str) -> tuple[Any, int]:
    """Return the status of an answer ("login" for a redirect there) and how often it was read."""
    body = Body()
    size = settings.MAX_REQUEST_BYTES if kind == FILES else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    extra: Any = {"wsgi.input": body, "CONTENT_LENGTH": str(size), "CONTENT_TYPE": kind}
    with transaction.atomic():
        response = client.generic(method.upper(), path, headers=headers, **extra)
        transaction.set_rollback(True)
    is_login = response.status_code == 302 and "/login" in response["Location"]
    return "login" if is_login else response.status_code, body.reads


def refused_callers(address: Address, audience: str) -> Iterator[str]:
    for caller in deciding_callers(audience):
        if caller == "foreign" and address.name in NAMED_IN_BODY:
            continue
        if not may(caller, audience):
            yield caller


def scripts_of(callers: dict[str, Actor]) -> dict[str, Client]:
    return {"anonymous": Client(), **{name: scripted(by) for name, by in callers.items()}}


def browsers_of(callers: dict[str, Actor]) -> dict[str, Client]:
    clients = {name: Client(enforce_csrf_checks=True) for name in ("anonymous", *callers)}
    for name, by in callers.items():
        clients[name].force_login(user_of(by))
    for client in clients.values():
        # Without it, Django refuses before it looks for the token in the body.
        client.cookies[settings.CSRF_COOKIE_NAME] = "a" * 32
    return clients


def test_operations_refuse_before_they_read(world: Cluster, people: dict[str, Actor]) -> None:
    """With a token, also with an idempotency key, whose fingerprint is of the body."""
    clients = scripts_of(people)
    faults = []
    for address in operations():
        path = address_of(address.path, world)
        for caller in refused_callers(address, rules.OPERATIONS[address.name]):
            got = send(clients[caller], address.method, path, JSON, **{"idempotency-key": "k"})
            if got[0] not in REFUSED or got[1]:
                faults.append((caller, address.method, address.name, *got))
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("kind", FORMS)
def test_operations_refuse_sessions_before_they_read(
    world: Cluster, people: dict[str, Actor], kind: str
) -> None:
    """The CSRF token may be in the body: the role is checked before it is looked for."""
    clients = browsers_of(people)
    faults = []
    for address in operations():
        audience = rules.OPERATIONS[address.name].replace("session", "member")
        if address.method not in WRITES:
            continue
        path = address_of(address.path, world)
        for caller in refused_callers(address, audience):
            got = send(clients[caller], address.method, path, kind)
            if got[0] not in REFUSED or got[1]:
                faults.append((caller, address.method, address.name, *got))
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("kind", FORMS)
def test_pages_refuse_before_they_read(world: Cluster, people: dict[str, Actor], kind: str) -> None:
    clients = browsers_of(people)
    faults = []
    for address in pages():
        audience = rules.PAGES.get(f"{address.name}:post") or rules.PAGES[address.name]
        if address.method == "get":
            continue
        path = address_of(address.path, world)
        for caller in refused_callers(address, audience):
            got = send(clients[caller], "post", path, kind)
            if (got[0] not in REFUSED and got[0] != 405) or got[1]:
                faults.append((caller, address.name, *got))
    assert not faults, "\n".join(map(str, faults))


def test_the_admin_site_refuses_before_it_reads(db: None) -> None:
    """Of Django's pages, to everybody who is not of the staff."""
    someone = Actor(User.objects.create_user("someone"))
    for client in browsers_of({"someone": someone}).values():
        for path in ("/admin/", "/admin/auth/user/add/", "/admin/auth/group/1/change/"):
            status, reads = send(client, "post", path, FILES)
            assert (status in REFUSED, reads) == (True, 0), path


def test_who_is_admitted_is_read(world: Cluster, people: dict[str, Actor]) -> None:
    """So the tests above can fail."""
    scripts, browsers = scripts_of(people), browsers_of(people)
    queries = "/api/v1/clusters/sf/queries"
    assert send(scripts["operator"], "post", queries, JSON)[1]
    assert send(browsers["operator"], "post", queries, FORM)[1]
    assert send(browsers["operator"], "post", "/clusters/sf/start/", FORM)[1]
    assert send(browsers["viewer"], "post", "/clusters/sf/queries/check/", FORM)[1]
