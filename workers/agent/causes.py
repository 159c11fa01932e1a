"""Causes of the ends of drivers: codes, and advice for operators."""

import signal
from collections.abc import Mapping
from typing import Final

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
