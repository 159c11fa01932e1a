"""A harbour: a cluster with many queries on a running Weir, a mixed plan, and processes to kill.

The test of restarts and `python -m benchmarks.availability.recovery` use it.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from controlplane.runtime.process_kinds import PROCESSES as KINDS
from tests.end_to_end.gauges import Coast, cluster_document
from tests.end_to_end.surviving import told
from tests.support.running_weir import RunningWeir

_ROOT: Final = Path(__file__).parents[2]
# Without a demonstration, and with the planner of the tests.
ENVIRONMENT: Final = {
    "WEIR_DEMO": "0",
    "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests" / "planners")]),
}
# The words of a process's command line, all of which are there.
COMMANDS: Final = {
    "web": ("controlplane.runtime.web",),
    "worker": ("celery", "worker@weir"),
    "lab": ("celery", "lab@weir"),
    "webhooks": ("celery", "webhooks@weir"),
    "archiver": ("celery", "archive@weir"),
    "beat": ("celery", " beat"),
    "relay": ("workers.relay",),
    "agent": ("workers.agent",),
    "driver": ("-m workers.pipeline --cluster",),
    "redis": ("redis-server",),
}
# Without a demonstration there is no replayer; the death of the supervisor is that of Weir.
UNTOUCHED: Final = {"replayer", "supervisor"}
QUERIES: Final = 24
SPLIT: Final = ("piers-split", "piers-merged")
# What is checked while the plan is executed; at the end, everything is.
SAMPLE: Final = ("piers", "coast", "piers-02", "coast-03", *SPLIT)
# The relative change of a rate between two updates from which it has settled.
SETTLED: Final = 0.2
_PLAN: Final[dict[str, Any]] = {
    "planner": "mixed",
    "parameters": {"count": QUERIES, "share": 0.5},
}
_PUBLISHED: Final = """
import json
from controlplane.models import AuditEntry, RoutingVersion
versions = RoutingVersion.objects.filter(proposal={pk}).order_by("version")
audit = AuditEntry.objects.filter(object="proposal {pk}").order_by("id")
print(json.dumps(dict(
    operations=[op for row in versions for op in row.ops],
    audit=list(audit.values_list("action", flat=True)))))
"""


def undeclared() -> set[str]:
    """Return the kinds of processes that no test kills."""
    return {kind.name for kind in KINDS} - COMMANDS.keys() - UNTOUCHED


def harbour_document() -> dict[str, Any]:
    """Return the description of a cluster for which a plan has actions of every kind."""
    document = cluster_document()
    piers, coast = (query["text"] for query in document["queries"])
    (gauges,) = document["streams"]
    # The plan drops records of the two first streams, whose results nobody checks.
    others = [{**gauges, "name": name} for name in ("fog", "calm")]
    document["nodes"].append({"index": 2, "name": "mole"})
    document["cluster"] |= {"slots": 3, "splits": 2}
    document["streams"] = [*others, gauges]
    queries = [
        {"name": f"on-{row['name']}", "streams": [row["name"]], "text": coast} for row in others
    ]
    queries += document["queries"]
    for number in range(QUERIES - len(queries)):
        name, text = (("piers", piers), ("coast", coast))[number % 2]
        queries.append({"name": f"{name}-{number:02}", "streams": ["gauges"], "text": text})
    placement: dict[str, Any] = {row["name"]: n % 3 for n, row in enumerate(queries)}
    for name, grouping in zip(SPLIT, ("", "partial_key"), strict=True):
        queries.append(
            {
                "name": name,
                "streams": ["gauges"],
                "text": piers,
                "tasks": 4,
                "key_grouping": grouping,
                **({"aggregator": 0} if grouping else {}),
            }
        )
        placement[name] = [{"node": n, "first": 2 * n, "stop": 2 * n + 2} for n in (0, 1)]
    return document | {"queries": queries, "placement": placement}


@dataclass(frozen=True)
class Recovery:
    """The seconds after a process was killed, or continued, until each part worked again.

    `process`: another process runs, or the same one; `pages`: a page is served; `step`: a further
    step of the execution is done; `results`: records that were sent afterwards are in the results.
    """

    process: float
    pages: float
    step: float
    results: float


class Harbour(Coast):
    """The cluster, an execution of a mixed plan with one action a step, and its processes."""

    def __init__(self, weir: RunningWeir) -> None:
        super().__init__(weir, harbour_document())
        self.proposal = self._berths = 0
        self._rate: float | None = None

    def execute(self) -> None:
        """Request a mixed plan, and approve it; one action a step makes it last."""
        self.api.patch("/policy", json={"cluster_moves": 1}).raise_for_status()
        answer = self.api.post("/proposals", json=_PLAN)
        assert answer.is_success, answer.text
        self.proposal = answer.json()["id"]
        self.wait(lambda: self.row().get("state") == "ready")
        seal = {"seal": self.row()["seal"]}
        answer = self.api.post(f"/proposals/{self.proposal}/approve", json=seal)
        assert answer.is_success, answer.text

    def row(self) -> dict[str, Any]:
        """Return the proposal, empty where the web does not answer."""
        return self.get(f"/proposals/{self.proposal}")

    def steps(self) -> list[dict[str, Any]]:
        """Return the steps of the execution, the first one first."""
        body = self.get(f"/proposals/{self.proposal}/execution?per_page=100")
        return sorted(body.get("step_rows", ()), key=lambda step: int(step["number"]))

    def done(self) -> int:
        """Return how many steps are done; the execution must not have ended otherwise."""
        state = self.row().get("state")
        assert state in {None, "approved", "executing", "done"}, self.row()
        return sum(step["state"] == "done" for step in self.steps())

    def settle(self) -> None:
        """Append records until the streams have measured rates.

        All records have one window: older ones would be late.
        """
        self.send(0)
        self.wait(self.is_right)
        with self.flow(0):
            self.wait(self._has_settled)

    def _has_settled(self) -> bool:
        rows = self.get("/streams").get("streams", ())
        rate = next((row["rate"] for row in rows if row["name"] == "gauges"), None)
        if not rate:
            return False
        before, self._rate = self._rate, rate
        return before is not None and 0 < abs(rate - before) < SETTLED * before

    def finish(self) -> None:
        """Execute the rest in large steps; check the execution and all results."""
        self.wait(lambda: self._patched({"cluster_moves": 40}))
        self.wait(lambda: self.done() and self.row().get("state") == "done")
        self.wait(self.is_all_right)
        self.assert_each_action_once()

    def _patched(self, policy: dict[str, Any]) -> bool:
        with suppress(OSError):
            return self.api.patch("/policy", json=policy).is_success
        return False

    def assert_each_action_once(self) -> None:
        """Check routing versions, steps and audit log: nothing was applied twice, or omitted."""
        steps = self.steps()
        starts = [step["first"] for step in steps]
        assert starts == [0, *(step["stop"] for step in steps)][:-1]
        published = json.loads(told(self.weir, _PUBLISHED.format(pk=self.proposal)))
        operations = [json.dumps(op, sort_keys=True) for op in published["operations"]]
        assert len(operations) == len(set(operations)) == sum(step["applied"] for step in steps)
        assert steps[-1]["stop"] == self.row()["action_count"]
        verbs = [action for action in published["audit"] if action != "proposal.request"]
        assert len(verbs) == len(set(verbs)), verbs

    def is_right(self) -> bool:
        """Return whether a sample of the queries has the results of the records."""
        return all(self.found(name) == self.expected(name) for name in SAMPLE)

    def _has(self, pier: str) -> bool:
        """Return whether a sample of the queries by pier has the records of a pier."""
        names = [name for name in SAMPLE if name.startswith("piers")]
        return all(_of(pier, self.found(name)) == _of(pier, self.expected(name)) for name in names)

    def is_all_right(self) -> bool:
        """Return whether all queries of the checked stream have the results of the records."""
        names = [row["name"] for row in self.document["queries"] if row["streams"] == ["gauges"]]
        return all(self.found(name) == self.expected(name) for name in names)

    def victims(self, name: str) -> list[psutil.Process]:
        """Return the processes of a name, the oldest first."""
        processes = [one for one in psutil.process_iter() if self._is(one, COMMANDS[name])]
        return sorted(processes, key=lambda one: one.create_time())

    def kill(self, names: Sequence[str]) -> Recovery:
        """Kill (-9) a process of each name; return how long Weir takes to recover."""
        before, killed = self.done(), []
        for name in names:
            self.wait(lambda name=name: self.victims(name))  # type: ignore[misc]
            victim = self.victims(name)[0]
            killed.append((name, victim.pid))
            victim.kill()
        return self.recovery(killed, before)

    def stop(self, name: str, seconds: float) -> Recovery:
        """Stop (SIGSTOP) a process and what it forked, continue; return the time to recover."""
        self.wait(lambda: self.victims(name))
        victim = self.victims(name)[0]
        # An agent does not share the fate of its drivers.
        tree = [victim, *([] if name == "agent" else victim.children(recursive=True))]
        _signal(tree, signal.SIGSTOP)
        time.sleep(seconds)
        before = self.done()
        _signal(tree, signal.SIGCONT)
        return self.recovery([(name, 0)], before)

    def recovery(self, ended: Sequence[tuple[str, int]], before: int) -> Recovery:
        """Wait until everything works; `before`: steps that were done."""
        begun = time.monotonic()

        def after(reached: Callable[[], Any]) -> float:
            self.wait(reached)
            return round(time.monotonic() - begun, 1)

        process = after(lambda: all(self._runs(name, pid) for name, pid in ended))
        pages = after(self.page)
        # While other records flow, only the window of a pier without others holds still.
        self._berths += 1
        pier = f"berth {self._berths}"
        self.send(0, 3, [pier])
        step = after(lambda: self.done() > before or self.row().get("state") == "done")
        return Recovery(process, pages, step, after(lambda: self._has(pier)))

    def _runs(self, name: str, ended: int) -> bool:
        return any(one.pid != ended for one in self.victims(name))

    def _is(self, process: psutil.Process, words: Sequence[str]) -> bool:
        try:
            line = " ".join(process.cmdline())
            if not all(word in line for word in words):
                return False
            # Redis writes its title over its environment.
            redis = words == COMMANDS["redis"] and process.ppid() == self.runner
            return redis or process.environ().get("WEIR_RUN") == str(self.weir.data)
        except psutil.Error:
            return False

    @property
    def runner(self) -> int:
        """Return the process id of the runner."""
        assert self.weir.process is not None
        return self.weir.process.pid


def _of(pier: str, windows: dict[tuple[str, Any], Any]) -> dict[str, Any]:
    """Return the values of a pier by the start of the window."""
    return {start: values for (start, key), values in windows.items() if key == pier}


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        # The supervisor may have killed and restarted it.
        with suppress(psutil.Error):
            process.send_signal(number)
