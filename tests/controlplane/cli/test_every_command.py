"""Every command with every option: none ends as a fault of Weir, in this process or over HTTP.

The calls are derived from the parser, and so are their values: a choice of an option, or a value
that its type or its name has in the prepared world. So a new command or option is tried here, too.
"""

import json
from argparse import Action, ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.cli.codes import ExitCode
from controlplane.cli.command_parser import COMMON, LOCAL, SITE
from controlplane.cli.main import main
from controlplane.models import Cluster
from tests.controlplane.api.callers import user_of
from tests.controlplane.cli.conftest import Weir
from tests.controlplane.cli.test_operations import COMMANDS
from tests.support.api_world import PK, add_rows
from tests.support.cluster import telemetry

pytestmark = pytest.mark.nightly("commands")

# Those that start, back up and replace the Weir of this machine have tests of their own.
CALLED: Final = [(name, sub) for name, sub in COMMANDS if sub.get_default("run") not in SITE]
NOW: Final = timezone.now()
TIMES: Final = {"start": -1, "from": -1, "starts-at": 24, "ends-at": 48, "expires-at": 48}
AGGREGATES: Final = {"aggregates": {"n": "count(*)"}}
FILES: Final = {
    "records.csv": "x\n1.5\n",
    "schema.yaml": "columns: [{name: x, type: float}]\n",
    "query.json": json.dumps({"name": "drawn", "streams": ["s0"], "text": AGGREGATES}),
    "comparison.json": json.dumps({"asked": [{"planner": "placement"}], "budgets": [{}]}),
    "queries.yaml": "queries: [{name: timed, streams: [s0], ends_at: 2099-01-01T00:00:00Z,"
                    " text: {aggregates: {n: count(*)}}}]\n",
}  # fmt: skip
# Valid values by the name of an argument or option, in all commands or in one of them.
VALUES: Final[dict[str, list[str]]] = {name: words.split(" | ") for name, words in {
    "cluster": "sf", "stream": "s0", "query": "q0", "name": "q0", "node": "1",
    "id": f"{PK}", "delivery": f"{PK}", "incident": f"{PK}", "proposal": f"{PK}",
    "choice": "restart", "planner": "placement", "experiment": "fig4a", "user": "a-user",
    "role": "viewer", "sink": "out", "seal": "0" * 64, "split": "0",
     "filter": "name:q", "timeout": "0",
    "grouping": "partial_key", "to": "https://example.com/hook", "cron": "0 3 * * *",
    "master": "local[2]", "confirm": "sf", "for": "0", "column": "more:string",
    "remove": "odd", "schema": "schema.yaml", "file": "records.csv", "sample": "records.csv",
    "algorithm": "mms", "param": "nu=0.5", "values": "1.5 | 2", "series": "mms", "seeds": "1",
    "state": "running", "zone": "UTC", "on-bad": "keep", "data": "query.json", "resolution": "10",
    "aggregate": "n=count(*)", "key-grouping": "partial_key", "window": "60", "slide": "60",
    "where": "x > 1", "key": "stream", "weight": "2", "share": "0.5", "rung": "1",
    "list": "queries",
    "shedding-floor": "0.5", "floor": "0.5", "retention": "86400", "seconds": "86400",
    "key-grouping-parameter": "choices=2", "limit": "9", "on": "stream | stream", "right": "s1",
    "limit-mb": "64", "max-batch-mb": "64", "max-records": "5000", "every": "0.1", "nodes": "4",
    "cursor": "", "ids": "", "lateness": "5", "retention-windows": "500", "windows": "500",
    "order": "name", "NAME=VALUE": "", "names": "q1 | q2", "index": "1", "version": "1",
}.items()}  # fmt: skip
OF_COMMAND: Final[dict[str, dict[str, str]]] = {
    "clusters create": {"NAME=VALUE": "splits=2", "slug": "made"},
    "sql": {"statement": "SELECT 1 AS n", "output": "rows.csv", "format": "csv"},
    "clusters change": {"NAME=VALUE": "trigger_ms=500"},
    "clusters demo": {"name": "tour"},
    "policy set": {"NAME=VALUE": "node_moves=2"},
    "proposals estimate": {"NAME=VALUE": "nu=0.5"},
    "lab start": {"NAME=VALUE": "queries=100"},
    "lab run": {"param": "queries=50", "out": "run.json"},
    "lab estimate": {"NAME=VALUE": "queries=100"},
    "streams characteristics": {"NAME=VALUE": "average=60"},
    "streams what-if": {"NAME=VALUE": "average=5"},
    "streams append": {"data": "records.csv", "format": "csv"},
    "compare request": {"data": "comparison.json"},
    "streams declare": {"stream": "trips", "event-time": "", "format": "csv"},
    "streams delete": {"stream": "s5", "confirm": "s5"},
    "streams coordinates": {"east": "x", "north": "y"},
    "queries submit": {"name": "made", "input": "queries.yaml", "column": "twice=x * 2"},
    "explain": {"subject": "node:0"},
    "policy add-exclusion": {"kind": "node", "subject": "node 2"},
    "diff": {"FILE": "sf.yaml"},
    "apply": {"FILE": "sf.yaml"},
    "plan": {"input": "sf.yaml"},
    "scenarios start": {"kind": "rush_hour"},
    "sinks create": {"kind": "http", "settings": "url=https://example.com/", "start": "oldest"},
    "webhooks create": {"kind": "alerts", "format": "slack", "credential": ""},
    "webhooks change": {"kind": "alerts", "format": "slack", "credential": ""},
    "alerts list": {"subject": "node_load"},
    "queries key-grouping": {"param": ""},
    "queries results": {"state": "final", "key": "", "order": ""},
    "proposals list": {"state": "ready", "filter": "state:ready"},
    "streams infer": {"format": "csv"},
    "clusters log": {"log-url": ""},
    "queries end-matching": {"confirmed": "12"},
    "views save": {"list": "queries"},
}  # fmt: skip


# Given in every call: what bounds a computation, or the time of waiting.
BOUNDS: Final = {("lab run", "param"), ("lab run", "values"), ("lab run", "seeds")}
LIMITS: Final = ("timeout", "seconds")


def words_of(command: str, action: Action) -> list[str]:
    """Return the words that give an argument or option a valid value, [] to leave it out."""
    option = list(action.option_strings[-1:])
    name = (
        option[0].removeprefix("--no-").lstrip("-")
        if option
        else str(action.metavar or action.dest)
    )
    if action.nargs == 0:
        return option
    own = OF_COMMAND.get(command, {})
    if name in own:
        values = [own[name]] if own[name] else []
    elif action.choices:
        values = [str(list(action.choices)[-1])]
    elif action.metavar == "TIME":
        values = [(NOW + timedelta(hours=TIMES.get(name, 0))).isoformat()]
    else:
        of_type = "1" if action.type in (int, float) else "text"
        values = [word for word in VALUES.get(name, [of_type]) if word]
    return [*option, *values] if values else []


def calls(command: str, sub: ArgumentParser) -> Iterator[list[str]]:
    """Yield the words of calls: without options, with each of them, and with all together."""
    actions = [action for action in sub._actions if action.dest not in ("help", *COMMON)]
    exclusive = [
        {action.dest for action in group._group_actions} for group in sub._mutually_exclusive_groups
    ]
    needed = [action for action in actions if action.required and action.option_strings]
    needed += [action for group in sub._mutually_exclusive_groups if group.required
               for action in group._group_actions[:1]]  # fmt: skip
    free = [action for action in actions if action.option_strings and action not in needed]
    places = [action for action in actions if not action.option_strings]
    needed += [action for action in free
               if (command, action.dest) in BOUNDS or action.dest in LIMITS]  # fmt: skip
    free = [action for action in free if action not in needed]
    for chosen in ([], free, *([action] for action in free)):
        dests = {action.dest for action in chosen}
        kept = [
            action
            for action in needed
            if not (dests and any({action.dest} | dests <= group for group in exclusive))
        ]
        words = [word for action in (*kept, *chosen) for word in words_of(command, action)]
        arguments = [word for action in places for word in words_of(command, action)]
        yield [*command.split(), *words, *["--"] * bool(arguments), *arguments]


@pytest.fixture
def world(admin: Actor, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
          weir: Weir) -> None:  # fmt: skip
    """A row of each kind, telemetry, and the files that commands name."""
    add_rows(cluster, admin)
    now = int(NOW.timestamp() * 1000)
    ingestion.record(cluster, [telemetry(batch, now - 1000 * batch) for batch in (3, 2, 1)])
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("sf.yaml").write_text(weir("export", "sf", user=admin.name).out)


@pytest.mark.django_db
def test_no_call_ends_as_a_fault_of_weir(
    admin: Actor, world: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option is tried alone where all together are refused; what is refused says why."""
    monkeypatch.setenv("WEIR_USER", admin.name)
    refused = set()
    for command, sub in CALLED:
        plain, whole, *single = calls(command, sub)
        code = ended(capsys, *whole)
        if code == ExitCode.DONE:
            ended(capsys, "--json", *whole)
            continue
        codes = [ended(capsys, *words) for words in (plain, *single)]
        if ExitCode.DONE not in codes:
            refused.add(command)
    # What needs another state than that of the world is refused: a ready proposal, an armed ladder.
    assert 2 * len(refused) < len(CALLED), sorted(refused)


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> int:
    """Return the exit code of a call whose changes are rolled back."""
    with transaction.atomic():
        code = main(words)
        transaction.set_rollback(True)
    err = capsys.readouterr().err
    assert code in set(ExitCode) - {ExitCode.BROKEN}, (words, err)
    # A command that waits in vain prints what it waits for.
    said_otherwise = code == ExitCode.WAITED or {"audit", "verify"} <= set(words)
    assert code == ExitCode.DONE or err.startswith("weir: ") or said_otherwise, (words, err)
    return code


@pytest.mark.django_db(transaction=True)
def test_no_call_over_http_ends_as_a_fault_of_weir(
    admin: Actor, world: None, live_server: LiveServer, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One call of each command, with all of its options; a change stays for the next."""
    monkeypatch.setenv("WEIR_URL", live_server.url)
    monkeypatch.setenv("WEIR_TOKEN", tokens.create(user_of(admin), "terminal"))
    for command, sub in CALLED:
        if sub.get_default("run") in LOCAL:
            continue
        _, whole, *_ = calls(command, sub)
        code = main(whole)
        err = capsys.readouterr().err
        # Nobody computes a valid preview, as no worker runs.
        is_unserved = (command, code) == ("queries preview", ExitCode.AWAY) and "No worker" in err
        assert code in set(ExitCode) - {ExitCode.BROKEN, ExitCode.AWAY} or is_unserved, (whole, err)
