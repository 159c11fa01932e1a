"""Rows that pages need for their pictures, created in a running Weir as its users create them.

`prepared_rows` yields the addresses of their pages, and deletes the rows afterwards, or reverts
what they changed. Comparisons, proposals and alerts stay: Weir keeps what was decided.
"""

import json
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

NAME: Final = "screenshots"
# A run of a few seconds, with whiskers and several series.
RUN: Final = {
    "planner": "placement",
    "experiment": "fig3a",
    "parameters": {"queries": 2_000, "seeds": 2},
    "values": [1.0, 1.5, 2.0, 2.5, 3.0],
    "name": "Fewer queries",
}
# A plan of several steps, whose execution is paused after the first.
LONG_PLAN: Final = {"planner": "placement", "algorithm": "mms"}
COMPARISON: Final = {
    "asked": [
        {"planner": "placement", "algorithm": "mms"},
        {"planner": "placement", "algorithm": "refined", "parameters": {"seconds": 2}},
    ],
    "budgets": [{"share": 0.1}, {"share": 0.5}, {}],
}
# Switched off, as nobody receives there; a number, as a machine without DNS knows no names.
WEBHOOK: Final = {
    "name": "On call",
    "url": "https://93.184.215.14/weir",
    "kinds": ["proposals", "alerts"],
    "active": False,
}
# A limit that every cluster exceeds, and at once.
STRICT: Final = {"latency_ms": 1, "alert_hold_s": 0, "reason": "pictures of an alert"}
REASON: Final = {"reason": "pictures of the pages"}
ENDED: Final = ("done", "failed", "cancelled", "rejected", "stale", "stopped", "rolled back")
ALERT_S: Final = 60
# Computations share the machine with the pipeline.
COMPUTE_S: Final = 180
EXECUTE_S: Final = 90
POLL_S: Final = 0.5
BATCHES: Final = 90
BATCH_S: Final = 5


class Caller:
    """A client of the API with a bearer token."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of an operation. Raises `urllib.error.HTTPError`."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.address}/api/v1/{path}"
        request = Request(url, data, headers, method=method)  # noqa: S310 - the address is http
        with urlopen(request, timeout=COMPUTE_S) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None


@dataclass(frozen=True)
class Rows:
    """The created rows: addresses of their pages by URL name, and how they are removed."""

    call: Caller
    slug: str
    removals: ExitStack
    addresses: dict[str, str] = field(default_factory=dict)

    def of_cluster(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of an operation on the cluster."""
        return self.call(method, f"clusters/{self.slug}/{path}", body)

    def remove_by(self, call: Callable[..., Any], *parts: Any) -> None:
        """Call an operation in the end; a row that is gone needs none."""

        def removed() -> None:
            with suppress(OSError):
                call(*parts)

        self.removals.callback(removed)


@contextmanager
def temporary_admin() -> Iterator[tuple[str, str, str]]:
    """Yield name, password and token of an admin; the user is deleted afterwards."""
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - needs the settings

    from controlplane.access import tokens  # noqa: PLC0415

    users = get_user_model()
    users.objects.filter(username=NAME).delete()
    password = secrets.token_urlsafe(20)
    user = users.objects.create_superuser(NAME, password=password)
    try:
        yield NAME, password, tokens.create(user, "pictures", _now() + timedelta(hours=1))
    finally:
        user.delete()


@contextmanager
def prepared_rows(call: Caller, pages: set[str]) -> Iterator[Rows]:
    """Create and yield the rows that the named pages need; what cannot be created is reported."""
    with ExitStack() as removals:
        rows = Rows(call, call("GET", "clusters")["clusters"][0]["slug"], removals)
        for create, served in CREATED.items():
            if not pages & served:
                continue
            try:
                create(rows)
            except (OSError, TimeoutError) as error:
                text = error.read().decode() if isinstance(error, HTTPError) else ""
                print(f"weir: {create.__name__[1:]}: {error} {text}", file=sys.stderr)  # noqa: T201
        yield rows


def _query(rows: Rows) -> None:
    """Submit a query of several tasks, whose keys are the busiest streams."""
    streams = rows.of_cluster("GET", "streams?order=-rate&limit=12")["streams"]
    text = {"key": ["stream"], "aggregates": {"records": "count(*)"}, "window_s": 60}
    query = {
        "name": NAME, "streams": [row["name"] for row in streams], "tasks": 8, "text": text,
        "key_grouping": "partial_key",
    }  # fmt: skip
    pk = rows.of_cluster("POST", "queries", query)["id"]
    rows.remove_by(rows.of_cluster, "DELETE", f"queries/{NAME}")
    page = f"/clusters/{rows.slug}/queries/{pk}/"
    rows.addresses["query"] = page
    rows.addresses["query-keys"] = f"{page}keys/"
    rows.addresses["stream"] = f"/clusters/{rows.slug}/streams/{streams[0]['id']}/"


def _ladder(rows: Rows) -> None:
    rows.of_cluster("POST", "shedding/arm", REASON)
    rows.remove_by(rows.of_cluster, "POST", "shedding/disarm", REASON)


def _lab_run(rows: Rows) -> None:
    pk = rows.call("POST", "lab/runs", RUN)["id"]
    rows.remove_by(rows.call, "DELETE", f"lab/runs/{pk}")
    _wait(lambda: rows.call("GET", f"lab/runs/{pk}")["state"] in ENDED, "no Lab run", COMPUTE_S)
    rows.addresses["lab-run"] = f"/lab/runs/{pk}/"


def _comparison(rows: Rows) -> None:
    pk = rows.of_cluster("POST", "comparisons", COMPARISON)["id"]
    path = f"comparisons/{pk}"
    _wait(lambda: not rows.of_cluster("GET", path)["computing"], "no comparison", COMPUTE_S)
    rows.addresses["comparison"] = f"/clusters/{rows.slug}/compare/{pk}/"
    candidates = rows.of_cluster("GET", path)["candidates"]
    plans = [row["proposal"] for row in candidates if row["state"] == "ready"]
    rows.addresses["proposal"] = f"/clusters/{rows.slug}/proposals/{plans[-1]}/"


def _executions(rows: Rows) -> None:
    """Execute a small plan, and a longer one until its first step, where it is paused."""
    queries = rows.of_cluster("GET", "queries?state=running&node=0&limit=50")["queries"]
    names = [row["name"] for row in queries if row["tasks"] == 1][-3:]
    moves = {"queries": names, "node": 1, **REASON}
    path = _approved(rows, "proposals/moves", moves)
    _wait(partial(_is_in, rows, path, ENDED), "no end of the execution", EXECUTE_S)
    rows.addresses["proposal-done"] = f"/clusters/{rows.slug}/{path}/"
    path = _approved(rows, "proposals", LONG_PLAN)
    _wait(partial(_has_moved, rows, path), "no step", EXECUTE_S)
    rows.of_cluster("POST", f"{path}/pause")
    rows.addresses["execution"] = f"/clusters/{rows.slug}/{path}/"


def _approved(rows: Rows, requested: str, body: dict[str, Any]) -> str:
    """Request a plan and approve it when it is ready; return the path of its proposal."""
    path = f"proposals/{rows.of_cluster('POST', requested, body)['id']}"
    _wait(partial(_is_in, rows, path, ("ready", *ENDED)), f"no plan {path}", COMPUTE_S)
    sealed = {"seal": rows.of_cluster("GET", path)["seal"], **REASON}
    rows.of_cluster("POST", f"{path}/approve", sealed)
    rows.remove_by(rows.of_cluster, "POST", f"{path}/roll-back", sealed)
    return path


def _is_in(rows: Rows, path: str, states: Collection[str]) -> bool:
    """Return True if a proposal is in a state of these."""
    return rows.of_cluster("GET", path)["state"] in states


def _has_moved(rows: Rows, path: str) -> bool:
    """Return True once the execution of a proposal has finished a step."""
    try:
        return bool(rows.of_cluster("GET", f"{path}/execution")["applied"])
    except HTTPError:
        return False


def _alert(rows: Rows) -> None:
    """Raise an alert unless there is one, by a limit that is restored at once."""
    path = f"alerts?cluster={rows.slug}"
    alerts = rows.call("GET", path)["alerts"]
    if not alerts:
        policy = rows.of_cluster("GET", "policy")
        rows.of_cluster("PATCH", "policy", STRICT)
        try:
            alerts = _wait(lambda: rows.call("GET", path)["alerts"], "no alert", ALERT_S)
        finally:
            former = {name: policy[name] for name in STRICT if name in policy}
            rows.of_cluster("PATCH", "policy", former | REASON)
    rows.addresses["alert"] = f"/clusters/{rows.slug}/alerts/{alerts[0]['id']}/"


def _webhook(rows: Rows) -> None:
    hook = rows.call("POST", "webhooks", WEBHOOK | {"cluster": rows.slug})["webhook"]["id"]
    rows.remove_by(rows.call, "DELETE", f"webhooks/{hook}")
    rows.addresses["webhook"] = f"/webhooks/{hook}/"


def _grant(rows: Rows) -> None:
    path = f"grants/{NAME}"
    rows.of_cluster("PUT", path, {"role": "approver", **REASON})
    rows.remove_by(rows.of_cluster, "DELETE", path)


def _dead_letters(rows: Rows) -> None:
    """Append records of a column that no stream has."""
    stream = rows.of_cluster("GET", "streams?limit=1")["streams"][0]["name"]
    body = {"records": [{"no_such_column": number} for number in range(3)]}
    rows.of_cluster("POST", f"streams/{stream}/records?on_bad=dead_letter", body)
    rows.remove_by(rows.of_cluster, "POST", "dead-letters/delete", {"stream": stream, **REASON})


def _attached_job(rows: Rows) -> None:
    """Report the batches of a job as `workers.attach` reports them."""
    run = {"id": str(uuid4()), "run": str(uuid4()), "name": "orders per shop"}
    began = _now() - timedelta(seconds=BATCHES * BATCH_S)
    job = {"application": "app-20260302-0001", "name": "nightly orders", "spark_version": "4.0.1"}
    events = [{"kind": "started", **run, "at": began.isoformat()}]
    events += [_batch(run, number, began) for number in range(BATCHES)]
    answer = rows.call("POST", "attached/events", {"job": job, "events": events})
    rows.remove_by(rows.call, "DELETE", f"attached/jobs/{answer['job']}")


def _batch(run: dict[str, str], number: int, began: datetime) -> dict[str, Any]:
    """Return the report of a batch; its rate rises and falls within two minutes."""
    moment = began + timedelta(seconds=BATCH_S * (number + 1))
    rate = 400.0 + 20 * abs(number % 24 - 12) + 7 * (number % 5)
    count = int(rate * BATCH_S)
    rates = {"rows": count, "input_rate": rate, "processed_rate": 2.5 * rate}
    source = {"description": "KafkaV2[Subscribe[orders]]", "metrics": {
        "maxOffsetsBehindLatest": 20.0 + number % 7}, **rates}  # fmt: skip
    phases = {"addBatch": count // 8, "queryPlanning": 35, "walCommit": 22, "commitOffsets": 18}
    progress = {
        "batch": number, "duration_ms": sum(phases.values()), "phases": phases, **rates,
        "state": {"rows": 900 + number, "updated": 120, "bytes": 240_000 + 800 * number},
        "watermark": (moment - timedelta(seconds=10)).isoformat(), "sources": [source],
        "sink": {"description": "DeltaSink[/lake/orders]", "rows": 30},
    }  # fmt: skip
    return {"kind": "progress", **run, "at": moment.isoformat(), "progress": progress}


def _wait(read: Callable[[], Any], missing: str, seconds: float) -> Any:
    """Return the first true answer. Raises `TimeoutError` with the text if there is none."""
    end = time.monotonic() + seconds
    while not (answer := read()):
        if time.monotonic() > end:
            raise TimeoutError(f"{missing} within {seconds:.0f} s")
        time.sleep(POLL_S)
    return answer


def _now() -> datetime:
    return datetime.now(UTC)


# What is created, and the pages that show it. The query is first: its keys are sampled while the
# others are computed.
CREATED: Final[dict[Callable[[Rows], None], set[str]]] = {
    _query: {"query", "query-keys", "node", "stream", "explain"},
    _executions: {"proposals", "proposal-done", "execution", "ledger"},
    _ladder: {"shedding"},
    _lab_run: {"lab", "lab-run", "lab-experiment"},
    _comparison: {"comparison", "comparisons", "comparison-ask", "proposal", "proposals"},
    _alert: {"alert", "alerts", "fleet"},
    _webhook: {"webhook", "webhooks", "webhook-add", "webhook-change", "webhook-secret"},
    _grant: {"grants", "grant-set"},
    _dead_letters: {"dead-letters"},
    _attached_job: {"attached", "attached-query"},
}
