"""Commands call the API of this process and that of a Weir elsewhere: same output, same codes."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest
from django.urls import resolve
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.cli.backends.interface import ROOT as ROOT_PATH
from controlplane.cli.backends.interface import Answer, Api, Call
from controlplane.cli.backends.local import LocalApi
from controlplane.cli.backends.remote import RemoteApi
from controlplane.cli.command_parser import LOCAL
from controlplane.cli.operations.catalog import OPERATIONS
from controlplane.cli.parser import parser
from controlplane.models import Cluster, Proposal
from controlplane.plans.proposal_states import SAID
from tests.controlplane.api.callers import user_of
from tests.controlplane.cli.conftest import Weir
from tests.controlplane.cli.test_operations import REASONS, commands, operations, plain
from tests.support.api_world import PK, add_rows

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


READS: tuple[tuple[str, ...], ...] = (
    ("nodes list", "sf"), ("policy show", "sf"), ("policy loops", "sf"),
    ("queries list", "sf"), ("queries show", "sf q0"),
    ("proposals list", "sf"), ("proposals queue", "sf"), ("proposals show", f"{PK}"),
    ("dead-letters list", "sf"), ("queries show", "sf odd"), ("proposals show", "99"),
    ("proposals stop", f"{PK} --reason r"), ("queries end", "sf odd"),
    ("plan", "placement sf --param nu=-7"), ("plan", "placement sf --algorithm odd"),

    ("policy decisions", "sf"), ("policy blackouts", "sf"), ("policy exclusions", "sf"),
    ("scenarios list", "sf"), ("scenarios start", "sf rush_hour --minutes 5"),
    ("clusters versions", "sf"), ("clusters version", "sf 1"),
    ("clusters incident", f"sf {PK}"), ("streams drops", "sf s0"),
    ("queries results", "sf q0"), ("proposals planners", "sf"),
    ("proposals estimate", "sf --planner placement nu=0.5"),
    ("proposals move", "sf --query q0 --node 1"), ("proposals move", "sf --query odd --node 99"),
    ("proposals allowed", f"sf {PK}"), ("proposals actions", f"sf {PK}"),
    ("proposals running", "sf"), ("compare list", "sf"), ("compare show", f"sf {PK}"),
    ("ledger list", "sf"), ("ledger calibration", "sf"), ("lab runs", ""), ("lab queue", ""),
    ("lab experiment", "placement fig4a"), ("webhooks list", ""), ("attached list", ""),
    # Errors: the same sentence, place, advice and code.
    ("policy show", "odd"), ("compare show", "sf 99"), ("webhooks show", "99"),
    ("clusters delete", "sf --confirm sf"), ("clusters versions", "sf --limit 9999999"),
    ("policy set", "sf node_moves=-1 reason=x"), ("policy set", "sf odd=1 reason=x"),
    ("nodes change", "sf 99 --capacity 3"), ("lab show", "99"), ("lab export", "99"),

    ("explain", "sf node:0"), ("clusters list", ""), ("clusters show", "sf"),
    ("clusters health", "sf"), ("clusters decide", f"sf {PK} restart --reason r"),
    ("clusters skip-batch", "sf"), ("clusters skip-batch", "sf --batch 9 --reason r"),
    ("clusters start", "sf"), ("clusters stop", "sf"), ("clusters nodes", "sf 4"),
    ("clusters limit", "sf --max-records 5000"), ("clusters split-nodes", "sf"),
    ("clusters split-capacity", "sf 400"), ("streams list", "sf --order rate"),
    ("streams show", "sf s0"), ("streams show", "sf odd"),
    ("streams declare", "sf trips --sample trips.csv"),
    ("streams declare", "sf trips --sample trips.csv --apply"),
    ("streams declare", "sf bad/name --sample trips.csv --apply"),
    ("streams change", "sf s0 --column more:string"),
    ("streams change", "sf s0 --column more:string --apply"),
    ("streams change", "sf s0 --schema s0.yaml --apply"), ("streams change", "sf s0 --remove odd"),
    ("streams characteristics", "sf s0 average=60"),
    ("streams characteristics", "sf s0 peak=5 average="),
    ("streams redirect", "sf s0 1 --reason r"), ("streams redirections", "sf s0"),
    ("streams outlook", "sf s0"), ("streams what-if", "sf average=5"),
    ("dead-letters export", "sf"), ("dead-letters replay", "sf --all"),
    ("dead-letters replay", "sf"), ("dead-letters delete", "sf"),
    ("queries submit", "sf q0 --stream s0 --aggregate n=count(*)"),
    ("queries retain", "sf q0 --seconds 86400"), ("queries keys", "sf q0"),
    ("queries key-grouping", "sf q0 partial_key"), ("queries groupings", ""),
    ("queries groupings", "random_choices"), ("shedding show", "sf"),
    ("shedding arm", "sf --reason r"), ("shedding disarm", "sf --reason r"),
    ("shedding activate", "sf 1 --reason r"), ("shedding release", "sf"),
    ("shedding weights", "sf q0 --weight 2"), ("shedding history", "sf"),
    ("shedding history", "sf --intervals"),
    ("shedding drill", "sf --from 2026-01-01 --to 2026-01-02"),
    ("watch", "sf --for 0"), ("watch", f"sf --proposal {PK} --for 0"),
    ("tail", "sf q0 --for 0"), ("export", "sf"), ("export", "sf --no-measures"),
    ("import", "sf.yaml"), ("import", "bad.yaml"), ("lab list", "placement"),
    *((f"proposals {verb.path}", f"{PK} --reason r" + f" --seal {'0' * 64}" * verb.seal)
      for verb in SAID if verb.path != "cancel"),
)  # fmt: skip
# What has another result when it is repeated.
ONCE: tuple[tuple[str, ...], ...] = (
    ("proposals cancel", f"{PK} --reason r"), ("scenarios end", f"sf {PK}"),
)  # fmt: skip
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?|\b\d{13}\b")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The operations that are called meanwhile, by method and path."""
    operations: set[str] = set()

    def record(kind: type[Api]) -> None:
        send = kind.send

        def recorded(self: Any, call: Call) -> Answer:
            path = unquote(ROOT_PATH + call.path.partition("?")[0])
            route = resolve(path, "controlplane.api.urls").route
            parts = re.sub("<[^>]+>", "{}", route).removeprefix("api/v1")
            operations.add(f"{call.method} {parts}")
            return send(self, call)

        monkeypatch.setattr(kind, "send", recorded)

    record(LocalApi)
    record(RemoteApi)
    return operations


def files(weir: Weir, user: str) -> None:
    """Write the files that the commands name."""
    Path("trips.csv").write_text("sailed_at,cars\n2024-03-01T06:00:00Z,12\n")
    Path("s0.yaml").write_text("columns: [{name: more, type: string}]\n")
    Path("sf.yaml").write_text(weir("export", "sf", user=user).out)
    Path("bad.yaml").write_text("weir: 1\ncluster: {slug: sf, odd: 1}\n")


def test_every_command_works_both_ways_with_the_same_output(
    weir: Weir, operator: Actor, elsewhere: tuple[str, ...], called: set[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Times of the call differ, and are masked. Together, commands reach all operations."""
    monkeypatch.chdir(tmp_path)
    files(weir, operator.name)
    for command, words in READS:
        for more in ((), ("--json",)):
            call = (*command.split(), *words.split(), *more)
            here = weir(*call, user=operator.name)
            there = weir(*call, *elsewhere)
            results = [(way.code, _TIME.sub("", way.out), way.err) for way in (here, there)]
            assert results[0] == results[1], call
            assert here.code in (0, 1, 2, 3, 4, 6), (call, here.err)
    for command, words in ONCE:
        assert weir(*command.split(), *words.split(), *elsewhere).code == 0
    declared = {plain(item.method, item.path) for item in OPERATIONS}
    assert called | declared | set(REASONS) == operations()
    written = {command for command, _ in (*READS, *ONCE)} | {item.command for item in OPERATIONS}
    local = {name for name, sub in commands(parser()) if sub.get_default("run") in LOCAL}
    assert written | local == {name for name, _ in commands(parser())}


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
        assert (gone.code, gone.out) == (0, f"exclusion {asked.json['id']} is removed\n")
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
    # A server that is no Weir, or one without this version of the API.
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
    ["shedding history sf --hours", "tail sf q0 --for", "watch sf --every", "plan p sf --timeout"],
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


def sent(flaky: Flaky, method: str) -> tuple[Answer, list[float]]:
    import httpx  # noqa: PLC0415

    pauses: list[float] = []
    client = httpx.Client(base_url="http://weir", transport=httpx.MockTransport(flaky))
    return RemoteApi(client, pauses.append).send(Call(method, "/me")), pauses


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
