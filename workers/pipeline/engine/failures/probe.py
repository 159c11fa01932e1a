"""Finding the queries that end or hang the process of a node: evaluated first in a forked child.

Whatever a child does (a crash in compiled code, an endless loop, a call of `os._exit`), the node
lives. The child reports each stage of the engine with the queries that it works for; the last
report before its end names the suspects, and bisection finds the queries.
"""

import ctypes
import gc
import json
import logging
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.wire.limits import call_seconds
from workers.pipeline.engine.failures import isolation
from workers.pipeline.engine.failures.fault import FaultReason, QueryFault

logger = logging.getLogger("weir.pipeline")

# A stage may take this many times as long as one call of a user's function.
_TIMEOUT_FACTOR: Final = 2.0
# With more queries than this a stage is reported without them.
_NAMED: Final = 256
_FAILED: Final = 3
_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG

# Evaluates the node's batch with these queries alone, and keeps nothing of it.
Evaluate = Callable[[Collection[int]], object]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How a child ended: empty for well; the stage it was in, and for which queries."""

    problem: str
    stage: str = ""
    queries: tuple[int, ...] = ()


def find_culprits(
    queries: Collection[int],
    evaluate: Evaluate,
    step: Callable[[Mapping[int, FaultReason]], None] = lambda _: None,
) -> dict[int, FaultReason]:
    """Return the queries that end or hang a process that evaluates them, with the reason.

    `step` is called with those found so far after each child. A batch that fails without any
    query, or only with several together, has no culprit.
    """
    result: dict[int, FaultReason] = {}
    left = sorted(queries)

    def run(some: Sequence[int]) -> ProbeResult:
        outcome = run_probe(some, evaluate)
        step(result)
        return outcome

    if run([]).problem:
        logger.error("a batch fails without any query")
        return result
    while (outcome := run(left)).problem:
        named = [query for query in outcome.queries if query in left]
        culprits = _bisect(named, run) or _bisect(left, run)
        if not culprits:
            logger.error("a batch fails (%s), but with no query alone", outcome.problem)
            break
        result |= culprits
        left = [query for query in left if query not in culprits]
    return result


def _bisect(
    queries: Sequence[int], run: Callable[[Sequence[int]], ProbeResult]
) -> dict[int, FaultReason]:
    """Return those of the queries that fail without the others."""
    outcome = run(queries) if queries else ProbeResult("")
    if not outcome.problem:
        return {}
    # The queries of one evaluation share its computation.
    shared = outcome.stage == isolation.EVALUATE and set(queries) <= set(outcome.queries)
    if len(queries) == 1 or shared:
        return dict.fromkeys(queries, FaultReason(outcome.problem, outcome.stage))
    half = len(queries) // 2
    return _bisect(queries[:half], run) | _bisect(queries[half:], run)


def probe_call(work: Callable[[], object]) -> None:
    """Do something in a forked child. Raises `QueryFault` if that ends badly."""
    outcome = run_probe((), lambda _: work())
    if outcome.problem:
        raise QueryFault(outcome.problem)


def run_probe(queries: Collection[int], evaluate: Evaluate) -> ProbeResult:
    """Evaluate the queries in a forked child and return how it ended."""
    reading, writing = os.pipe()
    parent = os.getpid()
    # What is buffered must not be written twice.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(queries, evaluate, writing, parent)
    os.close(writing)
    try:
        return _wait_for_child(child, reading)
    finally:
        os.close(reading)


def _run(queries: Collection[int], evaluate: Evaluate, writing: int, parent: int) -> None:
    """Evaluate the queries and end the process."""
    code = _FAILED
    try:
        gc.disable()
        # A crash is expected: no file of the size of the process is wanted of it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            return
        with isolation.report_stages(lambda stage, some: _report(writing, stage, some)):
            evaluate(queries)
        code = 0
    except BaseException:
        logger.exception("a probe failed")
    finally:
        os._exit(code)


def _report(writing: int, stage: str, queries: Sequence[int]) -> None:
    named = list(queries) if len(queries) <= _NAMED else []
    os.write(writing, json.dumps([stage, named]).encode() + b"\n")


def _wait_for_child(child: int, reading: int) -> ProbeResult:
    """Read the child's reports until it ends; kill it after too long a silence."""
    seconds = _TIMEOUT_FACTOR * call_seconds()
    last, rest, hung = b"", b"", False
    while True:
        ready, _, _ = select.select([reading], [], [], seconds)
        data = os.read(reading, 65_536) if ready else b""
        if not data:
            hung = not ready
            break
        *lines, rest = (rest + data).split(b"\n")
        last = lines[-1] if lines else last
    status = _reap(child, 0.0 if hung else seconds)
    stage, queries = json.loads(last) if last else ("", [])
    problem = f"made no progress for {seconds:g} s" if hung else _describe_exit(status)
    return ProbeResult(problem, stage, tuple(queries))


def _reap(child: int, seconds: float) -> int:
    """Return the status of a child that should have ended; it is killed after so many seconds."""
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _describe_exit(status: int) -> str:
    """Return how a process ended, empty for well."""
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return ""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"ended the process that evaluates it: signal {name}"
    return f"ended the process that evaluates it: exit code {code}"
