"""Unexpected ends of drivers: codes of their causes, advice for operators, and crash loops."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Consecutive ends at one batch, or of one cause, that make a crash loop.
LOOP: Final = 3
WITHIN_S: Final = 3600.0
KEPT: Final = 50
EXIT: Final = "exit"
KILLED: Final = "killed"
MEMORY: Final = "memory"
DISK: Final = "disk-full"
NO_HEARTBEAT: Final = "no-heartbeat"
JVM_SILENT: Final = "jvm-silent"
NO_PROGRESS: Final = "no-progress"
SLOW_BATCH: Final = "slow-batch"
SLOW_START: Final = "slow-start"
NOT_STARTED: Final = "not-started"
SLOTS: Final = "slots"
SLOW_WORKER: Final = "slow-worker"

# Patterns of errors of drivers and of Redis, and their causes; the first match decides.
SIGNS: Final[tuple[tuple[str, str], ...]] = (
    ("No space left on device", DISK),
    ("Disk quota exceeded", DISK),
    ("File too large", DISK),
    ("command not allowed when used memory", "redis-memory"),
    ("MISCONF", "redis-disk"),
    ("READONLY", "redis-read-only"),
    ("OutOfMemoryError", MEMORY),
    ("MemoryError", MEMORY),
    ("Cannot allocate memory", MEMORY),
    ("WrongSlots", SLOTS),
    ("redis.exceptions.ConnectionError", "redis-away"),
    ("redis.exceptions.TimeoutError", "redis-away"),
    ("BusyLoadingError", "redis-away"),
    ("Python worker failed to connect back", SLOW_WORKER),
)

ADVICE: Final[Mapping[str, str]] = {
    EXIT: "Read the driver's log; skip a batch that cannot be processed",
    KILLED: "Another process killed it, most often the kernel for lack of memory",
    MEMORY: "Give Spark more memory (WEIR_SPARK_CONF spark.driver.memory), or the machine",
    DISK: "Free space on the disk of checkpoints and data; the driver then restarts automatically",
    "redis-memory": "Give Redis more memory (maxmemory); the driver then restarts automatically",
    "redis-disk": "Free space on the disk of Redis; the driver then restarts automatically",
    "redis-read-only": "REDIS_URL must lead to the primary; the driver then restarts automatically",
    "redis-away": "Start Redis, or check REDIS_URL; the driver then restarts automatically",
    NO_HEARTBEAT: "Check the load and memory of the machine",
    JVM_SILENT: "Check the load and memory of the machine: a JVM short of memory pauses",
    NO_PROGRESS: "Read the driver's log; check the load of the machine and of Redis",
    SLOW_BATCH: "Lower the records of a batch, or give Spark more cores",
    SLOW_START: "Read the driver's log; a large state takes long to load from a slow disk",
    SLOW_WORKER: "Check the load of the machine: Python did not start within Spark's ten seconds",
    NOT_STARTED: "Read the agent's log",
    SLOTS: "Change the number of slots by workers.agent.repartition, or set it back",
}


def cause_of(exit_code: int | None, error: str) -> str:
    """Return the code of the cause, from exit code and last error line."""
    for sign, cause in SIGNS:
        if sign in error:
            return cause
    return KILLED if exit_code == -signal.SIGKILL else EXIT


def described(exit_code: int | None, error: str) -> str:
    """Return a description of a driver's end, at most 300 characters."""
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else ""
        ending = f"ended by signal {-exit_code} {name}".rstrip()
        return f"{ending}: {error}"[:300] if error else ending
    return (error or f"ended with code {exit_code}")[:300]


@dataclass(frozen=True, slots=True)
class Death:
    """An unexpected end of a driver (`models.health.DriverRestart`); `at_s`: seconds since 1970."""

    at_s: float
    cause: str
    detail: str
    exit_code: int | None = None
    batch: int | None = None
    unread: int | None = None
    uptime_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Loop:
    """A crash loop: number of consecutive ends, their cause, and their batch if it is the same."""

    count: int
    cause: str
    detail: str
    batch: int | None

    def __str__(self) -> str:
        what = "the driver" if self.batch is None else f"batch {self.batch}"
        how = "has ended" if self.batch is None else "has ended the driver"
        advice = ADVICE.get(self.cause, ADVICE["exit"])
        return f"{what} {how} {self.count} times: {self.detail} [{self.cause}]. {advice}"


def loop_of(deaths: Sequence[Death], now_s: float) -> Loop | None:
    """Return the crash loop of the newest deaths (ordered by time), None without one.

    Ends at the same batch are a loop whatever their causes, and so are ends of the same cause.
    """
    recent = [death for death in deaths if now_s - death.at_s <= WITHIN_S]
    if not recent:
        return None
    last = recent[-1]
    same_batch = _in_a_row([death.batch == last.batch for death in recent])
    same_cause = _in_a_row([death.cause == last.cause for death in recent])
    if last.batch is not None and same_batch >= LOOP:
        return Loop(same_batch, last.cause, last.detail, last.batch)
    if same_cause >= LOOP:
        return Loop(same_cause, last.cause, last.detail, None)
    return None


def _in_a_row(same: Sequence[bool]) -> int:
    """Return the number of True values at the end."""
    return next((index for index, item in enumerate(reversed(same)) if not item), len(same))
