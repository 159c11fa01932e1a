"""A migration on a running Weir, seen from outside: its rows, and the processes to kill."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import psutil

from tests.support.running_weir import RunningWeir

# Each process of Weir by words of its command line, all of which are there.
PROCESSES: Final = {
    "worker": ("celery", "worker@weir"),
    "beat": ("celery", " beat"),
    "web": ("uvicorn",),
    "relay": ("workers.relay",),
    "agent": ("workers.agent",),
    "redis": ("redis-server",),
    "driver": ("-m workers.pipeline --cluster",),
}
# Spark's start after the driver or its Redis was killed, with room.
PATIENCE_S: Final = 150.0

_ASK: Final = """
from controlplane.models import Cluster, Policy
from controlplane.proposals import decisions, requests
from controlplane.access.roles import Actor
from django.contrib.auth.models import User
cluster, by = Cluster.objects.get(slug="sf"), User.objects.create_superuser("survivor")
# Trips come and go all the time; and one move a step makes it last.
Policy.objects.update_or_create(cluster=cluster, defaults=dict(settings=dict(
    cluster_moves=1, tolerated_ended=1.0, tolerated_new=100.0, tolerated_rates=100.0,
    latency_ms=600_000, pause_ms=600_000, watch="off")))
proposal = requests.request(Actor(by), cluster, "mms", {"nu": 1.0})
print(proposal.pk)
"""
_APPROVE: Final = """
from controlplane.models import Proposal
from controlplane.proposals import decisions, requests
from controlplane.access.roles import Actor
from django.contrib.auth.models import User
proposal = Proposal.objects.get(pk={pk})
decisions.approve(Actor(User.objects.get(username="survivor")), proposal, proposal.seal)
print(len(proposal.actions))
"""
_HURRY: Final = """
from controlplane.models import Policy
row = Policy.objects.get(cluster__slug="sf")
row.settings |= dict(cluster_moves=200, node_moves=200)
row.save()
print(1)
"""
_SEEN: Final = """
import json
from controlplane.models import Execution, Proposal, RoutingVersion

from controlplane.wire.routing import RoutingTable
proposal = Proposal.objects.get(pk={pk})
execution = Execution.objects.filter(proposal=proposal).first()
versions = RoutingVersion.objects.filter(proposal=proposal).order_by("version")
moved = [op["query"] for row in versions for op in row.ops]
steps = list(execution.steps.order_by("number").values_list("first", "stop", "state", "moved",
             "tasks")) if execution else []
print(json.dumps(dict(state=proposal.state, moves=len(proposal.actions), error=proposal.error,
                      done=execution.done if execution else 0, steps=steps, moved=moved)))
"""


def told(weir: RunningWeir, script: str) -> str:
    """Return what a script prints that runs on the database of a Weir."""
    lines = f"import django\ndjango.setup()\n{script}"
    environment = {
        **os.environ,
        "WEIR_DATA": str(weir.data),
        "REDIS_URL": weir.redis_url(),
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", lines], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


class Migration:
    """A proposal that is being carried out, one move a step."""

    def __init__(self, weir: RunningWeir) -> None:
        self.weir = weir
        self.pk = int(told(weir, _ASK))
        self.until(lambda seen: seen["state"] == "ready")
        told(weir, _APPROVE.format(pk=self.pk))

    def seen(self) -> dict[str, Any]:
        """Return the proposal's state, its steps, and the queries that versions have moved."""
        found: dict[str, Any] = json.loads(told(self.weir, _SEEN.format(pk=self.pk)))
        return found

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the rows say so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached(seen := self.seen()):
            assert time.monotonic() < deadline, (seen, self.weir.said()[-3000:])
            time.sleep(0.2)
        return seen

    def goes_on(self) -> dict[str, Any]:
        """Wait until two further steps have really moved a task each."""
        before = len(made(self.seen()))
        return self.until(lambda seen: len(made(seen)) >= before + 2)

    def hurry(self) -> None:
        """Let the rest go in large steps."""
        told(self.weir, _HURRY)


def made(seen: dict[str, Any]) -> list[list[Any]]:
    """Return the steps whose tasks have come to their new node."""
    return [step for step in seen["steps"] if step[2] == "done" and step[3]]


def kill(weir: RunningWeir, name: str) -> int:
    """End one process of Weir with -9; returns its id.

    One that is away at the moment, as a driver whose Redis was killed, is waited for.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (found := _processes(weir, name)):
        assert time.monotonic() < deadline, f"no {name}:\n{weir.said()[-3000:]}"
        time.sleep(0.2)
    victim = min(found, key=lambda one: one.create_time())
    victim.kill()
    victim.wait(10)
    return victim.pid


def _processes(weir: RunningWeir, name: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter() if _is(one, weir, PROCESSES[name])]


def _is(process: psutil.Process, weir: RunningWeir, words: tuple[str, ...]) -> bool:
    try:
        line = " ".join(process.cmdline())
        if not all(word in line for word in words):
            return False
        # Redis writes its title over its environment; the title has its port.
        port = weir.redis_url().rpartition(":")[2].partition("/")[0]
        return f":{port}" in line or process.environ().get("WEIR_RUN") == str(weir.data)
    except psutil.Error:
        return False
