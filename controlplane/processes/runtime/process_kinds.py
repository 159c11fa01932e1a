"""The processes of Weir, declared once: heartbeats, pages, API, metrics and docs derive from it."""

from dataclasses import dataclass
from typing import Final

from controlplane.installation.extras import has_lab

# A process writes its heartbeat this often (s), and is silent after the time-out (s).
PERIOD_S: Final = 2.0
TIMEOUT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class ProcessKind:
    """A kind of process and what stops while none of its processes runs.

    `queue`: the Celery queue that it serves, "" for none. `is_essential`: whether Weir is not ready
    without it. `is_local`: whether it only runs where the runner (`weir serve`) started Weir.
    `has_lease`: whether several hosts may have one, which take over from each other.
    """

    name: str
    title: str
    effect: str
    is_essential: bool = False
    is_local: bool = False
    has_lease: bool = False
    queue: str = ""
    period_s: float = PERIOD_S
    timeout_s: float = TIMEOUT_S


WEB: Final = ProcessKind(
    "web", "Web", "pages, API and live charts are not served", is_essential=True
)
WORKER: Final = ProcessKind(
    "worker",
    "Worker",
    "executions do not advance, proposals are not computed, queries are not placed",
    is_essential=True,
    queue="weir",
)
BEAT: Final = ProcessKind(
    "beat",
    "Beat",
    "periodic work does not start: executions, placement, monitors, retention",
    is_essential=True,
    has_lease=True,
)
RELAY: Final = ProcessKind(
    "relay",
    "Relay",
    "live charts stop, and steps of executions are not confirmed",
    is_essential=True,
    has_lease=True,
)
AGENT: Final = ProcessKind(
    "agent",
    "Agent",
    "Spark applications are not started, observed or restarted",
    is_essential=True,
    has_lease=True,
)
DRIVER: Final = ProcessKind(
    "driver", "Driver", "the cluster processes no records and applies no actions", timeout_s=30.0
)
LAB: Final = ProcessKind("lab", "Lab worker", "experiments do not run", queue="lab")
WEBHOOKS: Final = ProcessKind(
    "webhooks", "Webhook worker", "messages to webhooks wait", queue="webhooks"
)
SINKS: Final = ProcessKind("sinks", "Sinks", "results are not written to sinks; they wait")
SUPERVISOR: Final = ProcessKind(
    "supervisor", "Supervisor", "processes that end are not restarted", is_local=True
)
REPLAYER: Final = ProcessKind(
    "replayer", "Replayer", "the demonstrations send no records", is_local=True
)

# Drivers run per cluster; each cluster's driver has a heartbeat of its own (wire.keys.driver_key).
PROCESSES: Final[tuple[ProcessKind, ...]] = (
    WEB, WORKER, BEAT, RELAY, AGENT, DRIVER, *((LAB,) if has_lab() else ()), WEBHOOKS, SINKS,
    SUPERVISOR, REPLAYER,
)  # fmt: skip
# What each step of an execution passes through, besides the cluster's driver.
EXECUTION: Final = (WORKER, BEAT, AGENT, RELAY)


def kind_of(name: str) -> ProcessKind:
    """Return the declared kind. Raises `KeyError` for another name."""
    return {kind.name: kind for kind in PROCESSES}[name]
