"""The samples of README.md and docs/ are run against a Weir of the test, page by page."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest
import redis
from django.db import connection
from pytest_django.live_server_helper import LiveServer

from controlplane.access import audit_triggers, tokens
from controlplane.access.roles import Actor
from controlplane.api.streams.schemas import StreamIn
from controlplane.cli.main import main
from controlplane.integrations.formats import WEIR, example
from controlplane.models import Cluster, Proposal
from controlplane.results.sql.schemas import update_views
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START
from controlplane.wire.network.destinations import LIST
from controlplane.wire.records.record_codec import decode_block
from controlplane.wire.schema import StreamSchema
from tests.docs.test_paths import ROOT
from tests.support import cluster as made
from tests.support.execution import carried_out, scattered
from tests.support.nightly import by_night
from tests.support.previews import answer_at_once
from tests.support.topics import TopicProducer, create_topic, running_broker

SAMPLE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ORDERS: Final = """\
placed_at,shop,items
2026-10-18T10:00:00Z,Kiel,3
2026-10-18T10:00:05Z,Bremen,
"""
QUERIES: Final = """\
queries:
- {name: x, streams: [s0], text: {aggregates: {n: count(*)}}}
- {name: y, streams: [s99], text: {aggregates: {n: count(*)}}}
"""
# Pages whose samples are run by a test of their own.
ELSEWHERE: Final = {
    "docs/algorithms.md": "tests/docs/test_algorithms.py",
    "docs/attach.md": "tests/workers/attach/test_real_job.py",
    "docs/cluster-description.md": "tests/docs/test_cli.py",
}
# Pages whose JSON is read by another test, or sent by `prepare_broker`.
JSON_ELSEWHERE: Final = {
    "docs/queries.md": "tests/docs/test_queries.py",
    "docs/topic-to-table.md": "tests/docs/test_samples.py",
}
# What begins a command or sample that a test cannot run, and why.
CANNOT_RUN: Final = {
    "pip install weir": "no release is published; tests/deployment/test_installed.py installs it",
    "weir serve": "runs until Ctrl-C; tests/deployment/test_installed.py runs it",
    "git worktree": "measures for twenty minutes; with the commands between",
    "export JAVA_HOME": "of the same measurement",
    ".venv/bin/python -m benchmarks": "of the same measurement",
    "docker": "needs a daemon of Docker; tests/deployment/test_files.py reads the file",
    "kubectl": "needs a Kubernetes cluster",
    "helm": "needs a Kubernetes cluster",
    "python -m workers.pipeline": "needs Spark; tests/workers/pipeline/test_standalone.py runs it",
    "sudo": "changes the machine",
    "DATABASE_URL=": "of the same installation",
    "python3 -m venv /opt/weir": "changes the machine",
    "/opt/weir/bin/": "changes the machine",
    "useradd": "changes the machine",
    "install -D": "changes the machine",
    "cp deploy/systemd": "changes the machine",
    "systemctl": "changes the machine",
    "control$": "changes the machine",
    "data$": "changes the machine",
    "cd deploy/compose": "needs a daemon of Docker",
    "./secrets.sh": "is of Docker Compose",
    "curl -N": "is endless; tests/controlplane/api/queries/test_feed.py reads the feed",
    "import struct": "functions are registered once; tests/docs/test_queries.py runs it",
    "scrape_configs": "needs Prometheus",
    "from workers.attach": "needs Spark; tests/workers/attach/test_real_job.py runs it",
    "SELECT * FROM revenue": "needs Spark; tests/end_to_end/test_topic_story.py fills the table",
}


@dataclass
class World:
    """A served Weir with the cluster sf, and the folder in which commands run."""

    url: str
    token: str
    person: Actor
    folder: Path
    environment: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    # Of all samples of a page in Python.
    names: dict[str, Any] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    # Of the newest call of `weir`.
    code: int = 0
    servers: ExitStack = field(default_factory=ExitStack)

    def text(self, sample: str) -> str:
        """Return a sample with the addresses and files of this world."""
        for old, new in {"http://127.0.0.1:8000": self.url, **self.replaced}.items():
            sample = sample.replace(old, new)
        return sample


def samples(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each sample of a page."""
    return [(kind, body) for _, kind, body in SAMPLE.findall((ROOT / page).read_text())]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a shell's sample with what it prints, "" if that is not stated."""
    if text.lstrip().startswith("$ "):
        for part in re.split(r"^ *\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed
        return
    lines = ""
    for line in text.replace("\\\n", " ").splitlines():
        lines += f"\n{line}" if lines else line.strip()
        try:
            words = shlex.split(lines, comments=True)
        except ValueError:
            # Within quotation marks.
            continue
        if words:
            yield from ((command.strip(), "") for command in re.split(r" && ", lines))
        lines = ""


def cannot_run(sample: str) -> bool:
    return sample.startswith(tuple(CANNOT_RUN))


def call_curl(world: World, command: str) -> str:
    words = shlex.split(os.path.expandvars(command), comments=True)
    done = subprocess.run(
        [*words, "--silent", "--show-error", "--fail-with-body", "--max-time", "60"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    if done.stdout.startswith("{"):
        world.environment.setenv("NEXT", str(json.loads(done.stdout).get("next") or ""))
    return done.stdout


def call_weir(world: World, command: str) -> str:
    """Return what a command prints, "" of what it writes to a file."""
    if "watch" in command:
        # By now the worker has carried out what was approved.
        carried_out(Proposal.objects.get())
    if "SEAL" in command:
        command = command.replace("SEAL", Proposal.objects.get().seal)
    call, _, file = command.partition(" > ")
    world.code = main(shlex.split(call, comments=True)[1:])
    told = world.capsys.readouterr()
    if file:
        Path(file).write_text(told.out)
        return told.err
    return told.out + told.err


def call_python(world: World, command: str) -> str:
    words = shlex.split(command, comments=True)[1:]
    if words[0] == "manage.py":
        words[0] = str(ROOT / "manage.py")
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def set_variables(world: World, command: str) -> str:
    for word in shlex.split(command.removeprefix("export ")):
        name, _, value = word.partition("=")
        world.environment.setenv(name, value)
        if name == "WEIR_DESTINATIONS":
            # A start of Weir hands it on to its processes by this name.
            world.environment.setenv(LIST, value)
    return ""


CALLS: Final[dict[str, Callable[[World, str], str]]] = {
    "curl": call_curl,
    "weir": call_weir,
    "python": call_python,
    ".venv/bin/python": call_python,
    "export": set_variables,
}


def run_shell(world: World, text: str) -> None:
    for command, expected in commands(world.text(text)):
        if cannot_run(command):
            continue
        word = command.split()[0]
        call = set_variables if re.match(r"\w+=", word) else CALLS[word]
        printed = call(world, command)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        if not expected:
            assert (world.code, "weir: " in printed) == (0, False), f"{command}\n{printed}"
        else:
            same = doctest.OutputChecker().check_output(expected, printed, flags)
            assert same, f"$ {command}\n{printed}"


def run_python(world: World, text: str) -> None:
    if world.names.get("stream_id") is None and "stream_id" in text:
        world.names["stream_id"] = made.stream_id(Cluster.objects.get(slug="sf"), "orders-north")
    variables = {"WEIR_URL": world.url, "WEIR_TOKEN": world.token}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        exec(compile(world.text(text), "sample", "exec"), world.names)
    world.names["batch"] = world.names.get("rows")


def run_json(world: World, text: str) -> None:
    """Read what Weir reads, and repeat the request that a problem is the answer to."""
    sample = json.loads(text)
    if "event_time" in sample:
        assert StreamSchema.from_json(sample)
    elif "source" in sample:
        assert StreamIn.model_validate({"name": "s", **sample})
    elif str(sample.get("type")).startswith("urn:"):
        query = {"text": {"aggregates": {"n": "count(*)"}}, "name": "q", "streams": ["nowhere"]}
        answer = post(world, "queries", query).json()
        assert answer == sample | {"request": answer["request"]}
    elif "timestamp" in sample:
        message = json.loads(example(WEIR))
        assert (set(sample), set(sample["data"])) == (set(message), set(message["data"]))
    else:
        raise AssertionError(f"Nothing reads this:\n{text}")


SHELLS: Final = ("sh", "console")
# What a test compares, or nobody runs.
READ: Final = ("text", "ini", "mermaid")
RUNNERS: Final[dict[str, Callable[[World, str], None]]] = {
    "sh": run_shell,
    "console": run_shell,
    "python": run_python,
    "json": run_json,
}


def declare(world: World, *names: str) -> None:
    """Declare streams of orders, as the page of producers does."""
    schema = next(json.loads(body) for kind, body in samples("docs/streams.md") if kind == "json")
    streams = [{"name": name, "declared_rate": 40, "schema": schema} for name in names]
    post(world, "streams", {"streams": streams})


def prepare_site(world: World) -> None:
    """The first commands of a site, and a cluster of its own."""
    orders = ({"at": f"2026-03-01T10:0{i}:00Z", "country": "DE", "price": i} for i in range(5))
    Path("orders.ndjson").write_text("\n".join(map(json.dumps, orders)))
    world.replaced["ADMIN"] = "anna"


def prepare_commands(world: World) -> None:
    """The people and the cluster of the page, and its files."""
    scattered(world.person, Cluster.objects.get(slug="sf"))
    made.actor("viewer", "vera")
    made.actor("approver", "paul")
    Path("queries.yaml").write_text(QUERIES)
    Path("orders.csv").write_text(ORDERS)
    cluster, *_ = (body for kind, body in samples("docs/cluster-description.md") if kind == "yaml")
    Path("pump.yaml").write_text(cluster)


def prepare_own_cluster(world: World) -> None:
    world.environment.setenv(LIST, "k8s://https://kubernetes.default.svc:443")
    run_shell(world, "weir clusters create --slug own --name Own --slots 2")


def prepare_audit(world: World) -> None:
    """The triggers of the audit log, which a database of tests is without."""
    audit_triggers.install(connection)
    world.servers.callback(audit_triggers.remove, connection)


def prepare_orders(world: World) -> None:
    declare(world, "orders-north", "orders-south")


def prepare_broker(world: World) -> None:
    """Users of the page, and a broker with a topic of orders."""
    made.actor("operator", "operator")
    answer_at_once(world.environment)
    address = world.servers.enter_context(running_broker())
    create_topic(address, "orders", 2)
    producer = TopicProducer(address, "orders")
    (message,) = (text for kind, text in samples("docs/topic-to-table.md") if kind == "json")
    producer.send(0, json.loads(message))
    producer.flush()
    servers = ("broker-1:9092,broker-2:9092", "broker-1:9092")
    world.replaced |= dict.fromkeys(servers, address)


def prepare_query(world: World) -> None:
    """The query of the pages of results, in the clusters sf and shop."""
    world.environment.setenv(LIST, "postgresql://127.0.0.1:5432")
    world.replaced["db.example.org"] = "127.0.0.1"
    world.environment.setenv("WEIR_SINK_SECRET_SHOP_DB", "secret")
    prepare_site(world)
    run_shell(world, "weir clusters create --slug shop --name Shop --slots 2")
    for slug in ("sf", "shop"):
        run_shell(world, f"weir streams declare {slug} orders --sample orders.ndjson --apply")
        query = "orders-by-country --stream orders --key country --window 60"
        run_shell(world, f"weir queries submit {slug} {query} --aggregate 'orders=count(*)'")
    # A worker does it, where the database has views.
    update_views()


def post(world: World, path: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": f"Bearer {world.token}"}
    address = f"{world.url}/api/v1/clusters/sf/{path}"
    return httpx.post(address, json=body, headers=headers, timeout=60)


def check_producers(world: World) -> None:
    """The records of the page are in the log with their digits, and a repeated append once."""
    row = {"placed_at": 1_792_310_404_000, "shop": "Kiel", "customer": 1}
    records = pa.Table.from_pylist([row])
    first, again = (world.names["append"]("orders-north", records, "l", 1) for _ in range(2))
    assert first["position"] == again["position"]
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        ids = [world.names["stream_id"]]
        (entries,) = RedisLog(client, "sf").read_streams(ids, START, "+").values()
    # By then the log is in Kafka; of the samples before that, the last one is over HTTP.
    rows = [row for entry in entries for row in decode_block(entry.block).records.to_pylist()]
    assert [row["amount"] for row in rows] == [*[Decimal("31.50")] * 4, Decimal("12.90")]
    assert [rows[0][name] for name in ("shop", "customer", "items")] == ["Kiel", 7, 3]
    assert rows[0]["placed_at"].timestamp() == world.names["rows"][0]["placed_at"] / 1000


CHECKED: Final[dict[str, Callable[[World], None]]] = {"docs/producers.md": check_producers}
PREPARED: Final[dict[str, Callable[[World], None]]] = {
    "README.md": prepare_site,
    "docs/cli.md": prepare_commands,
    "docs/operations/kubernetes.md": prepare_own_cluster,
    "docs/operations/overload.md": prepare_orders,
    "docs/operations/protect.md": prepare_audit,
    "docs/producers.md": prepare_broker,
    "docs/queries.md": prepare_orders,
    "docs/sinks.md": prepare_query,
    "docs/sql.md": prepare_query,
    "docs/topics.md": prepare_broker,
}


@pytest.fixture
def world(
    live_server: LiveServer,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[World]:
    person = made.actor("admin", "anna")
    made.small_cluster(person)
    token = tokens.create(person.user, "samples")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    variables = {"WEIR_USER": "anna", "TOKEN": token, "WEIR": live_server.url}
    for name, value in {**variables, "REDIS_URL": redis_url}.items():
        monkeypatch.setenv(name, value)
    world = World(live_server.url, token, person, tmp_path, monkeypatch, capsys)
    with world.servers:
        yield world


ALL: Final = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "decisions" not in path.parts
]
# Runs an experiment.
LONG: Final = "docs/operations/lab.md"
PAGES: Final = [page for page in ALL if page not in (*ELSEWHERE, LONG) and samples(page)]


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", [*PAGES, *by_night("lab", [(LONG,)])])
def test_samples_of_a_page_run_in_turn(page: str, world: World) -> None:
    """Each finds what those before it have made."""
    if prepare := PREPARED.get(page):
        prepare(world)
    for language, text in samples(page):
        # Of a shell each command is looked at.
        is_read = language in READ or (language == "json" and page in JSON_ELSEWHERE)
        if language in SHELLS or not (is_read or cannot_run(text)):
            RUNNERS[language](world, text)
    if check := CHECKED.get(page):
        check(world)


def test_what_cannot_run_is_on_a_page() -> None:
    """And every sample has a language; that of another one is read by `test_site.py`."""
    found = [(kind, body) for page in ALL for kind, body in samples(page)]
    assert all(kind for kind, _ in found)
    begins = [body for _, body in found]
    for kind, body in found:
        begins += [call for call, _ in commands(body)] if kind in SHELLS else []
    unused = [begin for begin in CANNOT_RUN if not any(map(str.startswith, begins, repeat(begin)))]
    assert unused == []
    pages = ELSEWHERE | JSON_ELSEWHERE
    named = re.findall(r"tests/[\w/]+\.py", " ".join((*CANNOT_RUN.values(), *pages.values())))
    assert [path for path in (*named, *pages) if not (ROOT / path).exists()] == []
    for page, test in JSON_ELSEWHERE.items():
        assert "json" in [kind for kind, _ in samples(page)]
        assert page in (ROOT / test).read_text()


@pytest.mark.django_db(transaction=True)
def test_json_that_nothing_reads_and_a_command_that_fails_are_faults(world: World) -> None:
    with pytest.raises(AssertionError, match="Nothing reads this"):
        run_json(world, '{"a": 1}')
    with pytest.raises(AssertionError, match="nowhere"):
        run_shell(world, "weir clusters show nowhere > shown.json")
