"""Commands call the API of this installation and that of a Weir elsewhere alike."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.cli.client.api import Api, ApiResponse
from controlplane.models import Cluster, Proposal
from tests.controlplane.api.callers import user_of
from tests.controlplane.cli.conftest import Weir
from tests.support.api_world import add_rows

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def elsewhere(
    operator: Actor, cluster: Cluster, live_server: LiveServer, tmp_path: Path
) -> tuple[str, ...]:
    """Return the options that name a started server, and the token of an operator."""
    add_rows(cluster, operator)
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(tokens.create(user_of(operator), "terminal"))
    return "--url", live_server.url, "--token-file", str(file)


def test_changes_work_both_ways(
    weir: Weir, operator: Actor, cluster: Cluster, elsewhere: tuple[str, ...], tmp_path: Path
) -> None:
    soon = (timezone.now() + timedelta(days=2)).isoformat()
    for number, way in enumerate(({"user": operator.name}, {})):
        more = () if way else elsewhere
        capacity = 500.0 + number
        done = weir("nodes", "change", "sf", 1, "--capacity", capacity, "--json", *more, **way)
        assert (done.code, done.json[1]["capacity"]) == (0, capacity), done.err
        assert cluster.nodes.get(index=1).capacity == capacity
        asked = weir("policy", "add-exclusion", "sf", "--kind", "node", "--subject", "node 1",
                     "--expires-at", soon, "--reason", "r", "--json", *more,
                     **way)  # fmt: skip
        assert asked.code == 0, asked.err
        gone = weir("policy", "remove-exclusion", "sf", asked.json["id"], *more, **way)
        assert (gone.code, gone.err) == (0, "")
        file = tmp_path / "compare.json"
        file.write_text('{"asked": [{"planner": "placement"}], "budgets": [{}]}')
        compared = weir("compare", "request", "sf", "--data", file, "--json", *more, **way)
        assert (compared.code, len(compared.json["candidates"])) == (0, 1), compared.err
        proposal = compared.json["candidates"][0]["proposal"]
        assert Proposal.objects.get(pk=proposal).requested_by == operator.name
        waited = weir("compare", "show", "sf", compared.json["id"], "--wait", "--timeout", "0",
                      *more, **way)  # fmt: skip
        assert waited.code == 6


def test_a_token_has_its_role_and_is_a_secret(
    weir: Weir, operator: Actor, elsewhere: tuple[str, ...], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path
) -> None:  # fmt: skip
    url = elsewhere[:2]
    assert weir("whoami", "--json", *elsewhere).json["name"] == operator.name
    assert weir("whoami", *url).code == 4
    open_file = tmp_path / "open"
    open_file.write_text("weir_x")
    open_file.chmod(0o644)
    refused = weir("whoami", *url, "--token-file", open_file)
    assert (refused.code, "chmod 600" in refused.err) == (4, True)
    monkeypatch.setenv("WEIR_TOKEN", "weir_unknown")
    assert weir("whoami", *url).code == 4
    monkeypatch.setenv("WEIR_TOKEN", tokens.create(user_of(operator), "v", role="viewer"))
    assert weir("whoami", "--json", *url).json["token"]["role"] == "viewer"
    assert weir("nodes", "change", "sf", 1, "--capacity", 3, *url).code == 4
    assert weir("tokens", "create", "--name", "n", *url).code == 4
    assert weir("whoami", *url, user="a-user").code == 2
    assert weir("whoami", "--url", "http://weir.example.org").code == 2
    assert weir("whoami", "--url", "http://127.0.0.1:9").code == 5
    # A server that is not a Weir, or one without this version of the API.
    assert weir("whoami", "--url", f"{url[1]}/login", "--json").code == 2


def test_a_client_elsewhere_needs_neither_settings_nor_a_database(
    elsewhere: tuple[str, ...], tmp_path: Path
) -> None:
    script = (
        "import sys; from controlplane.cli.main import main; code = main(sys.argv[1:]);"
        "from django.conf import settings; assert not settings.configured; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "nodes", "list", "sf", *elsewhere],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        env=os.environ | {"WEIR_DEBUG": "odd", "WEIR_DATA": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "node 3" in done.stdout


@pytest.mark.parametrize("name", ["", ".", "..", "s0/drops", "../sf", "-1"])
@pytest.mark.parametrize("command", ["clusters samples {}", "streams show sf {}", "tail sf {}"])
def test_a_name_is_one_part_of_an_address(
    elsewhere: tuple[str, ...], weir: Weir, command: str, name: str
) -> None:
    words = [name if word == "{}" else word for word in command.split()]
    for more, user in ((elsewhere, ""), ((), "a-operator")):
        done = weir(*words, *more, user=user)
        assert (done.code, done.err.count("There is no ")) == (3, 1)


@pytest.mark.parametrize("queries", ["&a [*a]", "[{2030-01-01: 1}]"])
def test_yaml_that_is_no_json_is_refused(
    elsewhere: tuple[str, ...], weir: Weir, tmp_path: Path, queries: str
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(f"queries: {queries}\n")
    done = weir("queries", "submit", "sf", "--input", file, *elsewhere)
    assert (done.code, "JSON cannot express" in done.err) == (2, True)


@pytest.mark.parametrize("number", ["nan", "1e308", "-1"])
@pytest.mark.parametrize(
    "command",
    ["tail sf q0 --for", "watch sf --every", "plan p sf --timeout"],
)
def test_a_duration_is_bounded(cluster: Cluster, weir: Weir, command: str, number: str) -> None:
    done = weir(*command.split(), number)
    assert (done.code, "must be from 0 to 1,000,000" in done.err) == (2, True)


def test_times_without_a_zone_are_in_utc(elsewhere: tuple[str, ...], weir: Weir) -> None:
    words = ("sf", "e", "--stream", "s0", "--aggregate", "n=count(*)", "--ends-at", "2099-01-01")
    assert weir("queries", "submit", *words, *elsewhere).code == 0
    query = weir("queries", "show", "sf", "e", "--json", *elsewhere).json
    assert query["ends_at"] == "2099-01-01T00:00:00Z"
    times = ("--start", "2026-01-01T00:00", "--end", "2026-01-01T00:10")
    assert weir("clusters", "samples", "sf", *times, *elsewhere).code == 0
    assert weir("explain", "sf", "node:0", "--time", "2026-01-01", *elsewhere).code == 0


class Flaky:
    """A transport that answers with the next status, or loses the connection at 0."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.keys: list[str] = []

    def __call__(self, request: Any) -> Any:
        import httpx  # noqa: PLC0415

        self.keys.append(request.headers.get("Idempotency-Key", ""))
        status = self.statuses.pop(0)
        if status == 0:
            raise httpx.ReadError("lost", request=request)
        headers = {"Retry-After": "7"} if status >= 400 else {}
        return httpx.Response(status, json={}, headers=headers)


def sent(flaky: Flaky, method: str) -> tuple[ApiResponse, list[float]]:
    import httpx  # noqa: PLC0415

    pauses: list[float] = []
    client = httpx.Client(base_url="http://weir", transport=httpx.MockTransport(flaky))
    return Api(client, pauses.append).send(method, "/me"), pauses


def test_reads_are_retried_and_a_post_is_sent_once_by_its_key() -> None:
    answer, pauses = sent(Flaky(503, 429, 200), "GET")
    assert (answer.status, pauses) == (200, [7.0, 7.0])
    lost = Flaky(0, 200)
    answer, pauses = sent(lost, "POST")
    assert (answer.status, len(pauses)) == (200, 1)
    assert lost.keys[0] == lost.keys[1] != ""
    for method, status in (("POST", 503), ("PATCH", 503), ("DELETE", 429)):
        answer, pauses = sent(Flaky(status), method)
        assert (answer.status, pauses) == (status, [])
