"""Finding the queries that end or hang the process of a node: evaluated first in a forked child.

Whatever a child does (a crash in compiled code, an endless loop, a call of `os._exit`), the node
lives. The child reports each stage of the engine with the queries that it works for; the last
report before its end names the suspects, and bisection finds the queries.
"""

import logging
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from controlplane.child_processes.fork import forked
from controlplane.wire.limits import call_seconds
from workers.pipeline.engine.failures import isolation
from workers.pipeline.engine.failures.fault import FaultReason, QueryFault

logger = logging.getLogger("weir.pipeline")

# A stage may take this many times as long as one call of a user's function.
_TIMEOUT_FACTOR: Final = 2.0
# With more queries than this a stage is reported without them.
_NAMED: Final = 256

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
    """Evaluate the queries in a forked child and return how it ended.

    The child reports its stages; it is killed after too long a silence.
    """
    seconds, hung = _TIMEOUT_FACTOR * call_seconds(), False
    stage: str = ""
    named: list[int] = []
    with forked(partial(_run, queries, evaluate)) as child:
        try:
            while True:
                stage, named = child.message(seconds)
        except TimeoutError:
            hung = True
        except (EOFError, OSError):
            # It ends, or no longer reports.
            pass
        code = child.end(0.0 if hung else seconds)
    problem = f"made no progress for {seconds:g} s" if hung else _describe_exit(code)
    return ProbeResult(problem, stage, tuple(named))


def _run(queries: Collection[int], evaluate: Evaluate, sender: Any) -> None:
    def report(stage: str, some: Sequence[int]) -> None:
        sender.send((stage, list(some) if len(some) <= _NAMED else []))

    with isolation.report_stages(report):
        evaluate(queries)


def _describe_exit(code: int) -> str:
    """Return how a process ended, empty for well."""
    if code == 0:
        return ""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"ended the process that evaluates it: signal {name}"
    return f"ended the process that evaluates it: exit code {code}"
