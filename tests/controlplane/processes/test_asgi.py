"""The composed application serves pages, API, static files, and the one file of plotly."""

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import connections
from django.test import Client

from controlplane.installation.assets.plotly_bundle import served_bundle
from controlplane.installation.assets.serving import PLOTLY
from controlplane.models import Cluster
from controlplane.processes.runtime.request_bounds import Lane
from controlplane.processes.serving.fair_threads import FairThreads

# The first request imports pages and API, which takes long on a busy machine.
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Answer in new threads: in the old ones other tests have left connections to databases.

    A request looks at the connection of its thread, which is refused where a test has no database.
    """
    from controlplane.processes.asgi import django_application  # noqa: PLC0415 - reads the settings

    lane = FairThreads(Lane("main", 1))
    monkeypatch.setattr(django_application, "_main", lane)
    yield
    lane._threads.submit(connections.close_all).result()
    lane._threads.shutdown()


async def get(path: str, encodings: bytes = b"") -> tuple[int, dict[str, str], int]:
    """Return status, headers and length of the body."""
    from controlplane.processes.asgi import application  # noqa: PLC0415 - reads the settings

    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": path, "query_string": b"", "http_version": "1.1",
        "headers": [(b"host", b"localhost"), (b"accept-encoding", encodings)],
    }  # fmt: skip
    asked: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await asked.send_input({"type": "http.request", "body": b""})
    begin = await asked.receive_output(PATIENCE_S)
    length, more = 0, True
    while more:
        part = await asked.receive_output(PATIENCE_S)
        length += len(part.get("body", b""))
        more = part.get("more_body", False)
    headers = {name.decode().lower(): value.decode() for name, value in begin["headers"]}
    return begin["status"], headers, length


async def test_plotly_is_served_out_of_its_package() -> None:
    """No copy in the repository, and nothing else of the package."""
    status, headers, length = await get(staticfiles_storage.url(PLOTLY))
    assert status == 200
    assert length == served_bundle().stat().st_size
    assert headers["content-type"].startswith("text/javascript")
    assert headers["x-content-type-options"] == "nosniff"
    assert finders.find("vendor/widgetbundle.js") is None


@pytest.mark.parametrize("encoding", ["br", "gzip"])
@pytest.mark.parametrize("name", [PLOTLY, "js/page.js", "css/tokens.css"])
async def test_static_files_are_compressed_and_kept_by_browsers(name: str, encoding: str) -> None:
    """A name changes with its content: a browser asks for a file once."""
    url = staticfiles_storage.url(name)
    plain = await get(url)
    status, headers, length = await get(url, encoding.encode())
    assert (status, headers["content-encoding"]) == (200, encoding)
    assert length < plain[2] / 2
    assert "immutable" in headers["cache-control"]


async def test_pages_are_compressed() -> None:
    """By gzip, which every browser accepts."""
    status, headers, _ = await get("/login/", b"gzip")
    assert (status, headers["content-encoding"]) == (200, "gzip")


async def test_an_unknown_static_file_is_not_found() -> None:
    """Nor is anything outside the folders."""
    assert (await get("/static/../controlplane/settings.py"))[0] == 404


async def test_the_process_says_that_it_answers() -> None:
    """Without login or database."""
    assert (await get("/healthz"))[0] == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("origin", "answer"),
    [
        ("http://localhost", "websocket.accept"),
        ("https://elsewhere.example", "websocket.close"),
        ("", "websocket.close"),
    ],
)
async def test_a_socket_is_for_pages_of_this_host(
    redis_url: str, client: Client, origin: str, answer: str
) -> None:
    """A foreign page that an operator looks at must not read the live data with their cookie."""
    from controlplane.processes.asgi import application  # noqa: PLC0415

    await sync_to_async(_log_in)(client)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
    scope = {
        "type": "websocket",
        "path": "/ws/clusters/sf/",
        "query_string": b"",
        "headers": [*headers, (b"origin", origin.encode())] if origin else headers,
        "subprotocols": [],
    }
    asked: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await asked.send_input({"type": "websocket.connect"})
    assert (await asked.receive_output(PATIENCE_S))["type"] == answer
    await asked.send_input({"type": "websocket.disconnect", "code": 1000})
    # Channels may ignore that its read of Redis is cancelled: nothing of it is checked.
    await asked.wait(1)


def _log_in(client: Client) -> None:
    Cluster.objects.create(slug="sf", name="SF")
    client.force_login(User.objects.create_superuser("operator"))
