"""A harbour: a cluster with many queries on a running Weir, a mixed plan, and processes to kill.

The test of restarts and `python -m benchmarks.availability.recovery` use it.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from tests.end_to_end.gauges import CLUSTER, Coast, cluster_document
from tests.end_to_end.policy_changes import WIDE_LIMITS
from tests.end_to_end.surviving import assert_applied_once
from tests.end_to_end.weir_processes import WeirProcesses, send_signal
from tests.support.running_weir import RunningWeir

_ROOT: Final = Path(__file__).parents[2]
# Without a demonstration, and with the planner of the tests.
ENVIRONMENT: Final = {
    "WEIR_DEMO": "0",
    "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests" / "planners")]),
}
QUERIES: Final = 24
# The node that a mixed plan closes: the last one.
CLOSED: Final = 2
# So many actions of a plan are left when a process is killed or stopped.
ACTIONS_LEFT: Final = 6
# The states of a plan until its execution is done.
OPEN_STATES: Final = {"computing", "ready", "approved", "executing", "done"}
# Connections among which each web process has accepted some.
CONNECTIONS: Final = 30
SPLIT: Final = ("piers-split", "piers-merged")
# What is checked while the plan is executed; at the end, everything is.
SAMPLE: Final = ("piers", "coast", "piers-02", "coast-03", *SPLIT)
# The relative change of a rate between two updates from which it has settled.
SETTLED: Final = 0.2
_PLAN: Final[dict[str, Any]] = {
    "planner": "mixed",
    "parameters": {"count": QUERIES, "share": 0.5},
}


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

    `process`: a new process runs in its place, or the stopped one; `pages`: every web process
    serves a page; `step`: a step of the execution that began afterwards is done; `results`: records
    that were sent afterwards are in the results. Each is observed after the one before.
    """

    process: float
    pages: float
    step: float
    results: float


@contextmanager
def running_harbour(folder: Path) -> Iterator["Harbour"]:
    """Start a Weir of its own, without a demonstration; yield its harbour with measured rates."""
    weir = RunningWeir(folder / "data", ENVIRONMENT)
    weir.start()
    try:
        harbour = Harbour(weir)
        harbour.begin()
        harbour.settle()
        yield harbour
    finally:
        weir.end()
    assert weir.processes() == []


class Harbour(Coast):
    """The cluster, executions of mixed plans with one action a step, and its processes.

    Plans follow each other, so that an execution is under way whenever a process ends.
    """

    def __init__(self, weir: RunningWeir) -> None:
        super().__init__(weir, harbour_document())
        self.processes = WeirProcesses(weir)
        self.proposals: list[int] = []
        # The steps of the plans before the present one.
        self._steps_before = self._berths = 0
        self._rate: float | None = None

    def execute(self) -> None:
        """Request and approve a mixed plan; one action a step makes its execution last."""
        self.api.patch("/policy", json={"cluster_moves": 1, **WIDE_LIMITS}).raise_for_status()
        self.wait(self._is_under_way)

    def _is_under_way(self) -> bool:
        """Return whether some actions of a plan are left; request and approve the next plan."""
        self._continue_plans()
        row = self.row()
        if row.get("state") != "executing":
            return False
        steps = self.steps()
        return bool(steps) and row["action_count"] - steps[-1]["stop"] >= ACTIONS_LEFT

    def _continue_plans(self) -> None:
        """Request the next plan if the present one is done; approve it once it is ready."""
        row = self.row()
        if not self.proposals or row.get("state") == "done":
            self._request(len(self.steps()) if row else 0)
        elif row.get("state") == "ready":
            self._sent("post", f"/proposals/{row['id']}/approve", {"seal": row["seal"]})

    def _request(self, steps: int) -> None:
        """Request a plan; `steps`: those of the plan before, which closed the last node."""
        if self.proposals and not (
            steps and self._sent("patch", f"/nodes/{CLOSED}", {"active": True})
        ):
            return
        if answer := self._sent("post", "/proposals", _PLAN):
            self._steps_before += steps
            self.proposals.append(answer["id"])

    def _sent(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a change, empty where a process that it needs is away."""
        try:
            answer = self.api.request(method, path, json=body)
        except httpx.TransportError:
            return {}
        assert answer.is_success or answer.status_code == 503, answer.text
        return answer.json() if answer.is_success else {}

    def row(self) -> dict[str, Any]:
        """Return the present proposal, empty without one and where the web does not answer."""
        return self.get(f"/proposals/{self.proposals[-1]}") if self.proposals else {}

    def steps(self, proposal: int | None = None) -> list[dict[str, Any]]:
        """Return the steps of an execution, by default the present one, the first one first."""
        number = self.proposals[-1] if proposal is None else proposal
        body = self.get(f"/proposals/{number}/execution?limit=100")
        return sorted(body.get("step_rows", ()), key=lambda step: int(step["number"]))

    def done(self) -> int | None:
        """Return how many steps of all plans are done, None where the web does not answer.

        No execution may have ended otherwise.
        """
        row = self.row()
        if not row:
            return None
        assert row["state"] in OPEN_STATES, row
        done: int = sum(step["state"] == "done" for step in self.steps())
        return self._steps_before + done

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
        """Execute the rest in large steps; check the executions and all results."""
        self.wait(lambda: self._sent("patch", "/policy", {"cluster_moves": 40}))
        self.wait(self._is_done)
        self.wait(self.is_all_right)
        for proposal in self.proposals:
            self.assert_each_action_once(proposal)

    def _is_done(self) -> bool:
        if self.row().get("state") == "done":
            return True
        self._continue_plans()
        self.done()
        return False

    def assert_each_action_once(self, proposal: int) -> None:
        """Check routing versions, steps and audit log: nothing was applied twice, or omitted."""
        steps, row = self.steps(proposal), self.get(f"/proposals/{proposal}")
        assert row["state"] == "done"
        starts = [step["first"] for step in steps]
        assert starts == [0, *(step["stop"] for step in steps)][:-1]
        assert steps[-1]["stop"] == row["action_count"]
        assert_applied_once(self.weir, proposal, steps)

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

    def kill(self, names: Sequence[str]) -> Recovery:
        """Kill (-9) a process of each name; return how long Weir takes to recover."""
        self.wait(self._is_under_way)
        known: dict[str, set[int]] = {}
        for name in names:
            self.wait(lambda name=name: self._killed(name, known))  # type: ignore[misc]
        return self._recovery(
            lambda: all(self.processes.pids(name) - pids for name, pids in known.items())
        )

    def _killed(self, name: str, known: dict[str, set[int]]) -> bool:
        """Kill a process of a name, and note the processes of this name before."""
        known[name] = self.processes.pids(name)
        return self.processes.kill(name)

    def stop(self, name: str, seconds: float) -> Recovery:
        """Stop (SIGSTOP) a process and what it forked, continue; return the time to recover."""
        self.wait(self._is_under_way)
        count, tree = len(self.processes.main_pids(name)), self.processes.tree(name)
        send_signal(tree, signal.SIGSTOP)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Plans are executed as far as that is possible without the process.
            self._continue_plans()
            time.sleep(1.0)
        send_signal(tree, signal.SIGCONT)
        return self._recovery(lambda: self.processes.are_running(name, count))

    def _recovery(self, runs: Callable[[], bool]) -> Recovery:
        begun = time.monotonic()

        def after(reached: Callable[[], Any]) -> float:
            self.wait(reached)
            return round(time.monotonic() - begun, 1)

        process = after(runs)
        pages = after(self._serve_pages)
        self.wait(lambda: self.done() is not None)
        before = self.done() or 0
        # While other records flow, only the window of a pier without others holds still.
        self._berths += 1
        pier = f"berth {self._berths}"
        self.send(0, 3, [pier])
        step = after(lambda: self._has_stepped(before))
        return Recovery(process, pages, step, after(lambda: self._has(pier)))

    def _has_stepped(self, before: int) -> bool:
        """Return whether a step is done that was not under way when `before` steps were done."""
        self._continue_plans()
        return (self.done() or 0) > before + 1

    def _serve_pages(self) -> bool:
        """Return whether each web process serves a page, and no request for one fails."""
        pids = self.processes.main_pids("web")
        serving: set[int | None] = set()
        with ExitStack() as clients:
            for _ in range(CONNECTIONS):
                client = httpx.Client(base_url=self.weir.url, cookies=self.browser.cookies)
                clients.enter_context(client)
                try:
                    page = client.get(f"/clusters/{CLUSTER}/")
                except httpx.TransportError:
                    return False
                if page.status_code != httpx.codes.OK:
                    # Before the login it is a redirect.
                    self.page()
                    return False
                port = page.extensions["network_stream"].get_extra_info("client_addr")[1]
                serving.add(self.processes.owner_of(pids, port))
                if serving >= pids:
                    return True
        return False


def _of(pier: str, windows: dict[tuple[str, Any], Any]) -> dict[str, Any]:
    """Return the values of a pier by the start of the window."""
    return {start: values for (start, key), values in windows.items() if key == pier}
