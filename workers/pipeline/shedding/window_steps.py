"""Window drops of a ladder: rules with steps by event time, which travel in the offset.

Either all records of a window are dropped or none. So a new share begins with a group of windows
of which no record was read yet, and the rule keeps its earlier steps as long as windows before may
be open.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controlplane.wire.routing.compiled_ladder import CompiledLadder
from controlplane.wire.routing.drop_rules import (
    DropRule,
    Edge,
    add_step,
    first_group,
    needed_since,
    remove_old_steps,
)
from controlplane.wire.routing.ladder import WindowDrop

# Shares of windows are multiples of one over this number, so that few changes make a step.
LEVELS: Final = 20
# A rule with so many steps keeps its last share until old steps are no longer needed.
MAX_STEPS: Final = 16
_PRECISION: Final = 1e-9
# Other than the seeds of rules that people set: the samples are independent.
WINDOW_SEED: Final = 0x1ADDE2_0002

WindowRules = Mapping[Edge, DropRule]


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The event times (ms) of the records that were read.

    `newest`: by stream the newest one of all that were read (absent: no record was); `lateness`:
    of the queries behind each edge. `is_processed`: whether nodes processed all that was read.
    """

    newest: Mapping[int, int]
    lateness: Mapping[Edge, int]
    is_processed: bool = True


def next_rules(
    rules: WindowRules, ladder: CompiledLadder | None, position: float, times: EventTimes
) -> dict[Edge, DropRule]:
    """Return the window rules for the next batch.

    An edge without window drops in the ladder, or with other windows, ends the rule that it has
    with a group of windows; its other windows are dropped after that rule is over.
    """
    wanted = {} if ladder is None else ladder.windows
    result = {}
    for edge in sorted({*rules, *wanted}):
        window, rule = wanted.get(edge), rules.get(edge)
        if rule is not None:
            rule = _without_old_steps(rule, edge, times)
        share = 0.0
        if window is not None and (rule is None or _same_windows(rule, window)):
            assert ladder is not None
            wanted_share = share_of_windows(window, ladder.share(edge, position))
            share = math.ceil(wanted_share * LEVELS - 1e-9) / LEVELS
            rule = rule or _empty(window)
        rule = None if rule is None else _changed(rule, share, times.newest.get(edge[0]))
        if rule is not None:
            result[edge] = rule
    return result


def share_of_windows(window: WindowDrop, share: float) -> float:
    """Return the share of windows to drop so that a share of the records is dropped.

    A record is dropped if all windows with it are, in as many groups as they are in.
    """
    windows = -(-window.window_ms // window.slide_ms)
    fewest = -(-windows // window.batch)
    # Of so many places of a record's first window in its group, the last window is in the first
    # `fewest` groups; of the others, it is in the next one.
    few = (fewest * window.batch - windows + 1) / window.batch
    low, high = share, 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        dropped = few * middle**fewest + (1 - few) * middle ** (fewest + 1)
        low, high = (middle, high) if dropped < share else (low, middle)
    return low if share in (0.0, 1.0) or fewest == few == 1 else high


def _empty(window: WindowDrop) -> DropRule:
    return DropRule((), WINDOW_SEED, window.window_ms, window.slide_ms, window.batch)


def _same_windows(rule: DropRule, window: WindowDrop) -> bool:
    return (rule.window_ms, rule.slide_ms, rule.batch) == window[2:]


def _changed(rule: DropRule, share: float, newest_ms: int | None) -> DropRule | None:
    """Return the rule with a share from the next group of windows on; None if it drops nothing."""
    last = rule.steps[-1][1] if rule.steps else 0.0
    if share == last:
        return rule if rule.steps else None
    after = add_step(rule, first_group(rule, newest_ms), share)
    return rule if after is not None and len(after.steps) > MAX_STEPS else after


def _without_old_steps(rule: DropRule, edge: Edge, times: EventTimes) -> DropRule | None:
    newest = times.newest.get(edge[0])
    if newest is None or not times.is_processed:
        return rule
    since = needed_since(rule, newest - times.lateness.get(edge, 0))
    return rule if since is None else remove_old_steps(rule, since)


def current_share(rule: DropRule, newest_ms: int | None) -> float:
    """Return the share of the windows that begin at the newest event time."""
    shares = [share for since, share in rule.steps if newest_ms is not None and since <= newest_ms]
    return shares[-1] if shares else 0.0


def rules_to_json(rules: WindowRules) -> list[list[Any]]:
    """Return the rules as JSON values, each once with all edges that have it."""
    edges: dict[DropRule, list[list[int]]] = {}
    for edge, rule in rules.items():
        edges.setdefault(replace(rule, seed=WINDOW_SEED), []).append(list(edge))
    return [
        [rule.window_ms, rule.slide_ms, rule.batch, [list(step) for step in rule.steps], some]
        for rule, some in edges.items()
    ]


def rules_from_json(rows: Sequence[Sequence[Any]]) -> dict[Edge, DropRule]:
    """Return the rules that `rules_to_json` wrote."""
    return dict(_rules(rows))


def _rules(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Edge, DropRule]]:
    for window_ms, slide_ms, batch, steps, edges in rows:
        times = tuple((int(since), float(share)) for since, share in steps)
        rule = DropRule(times, WINDOW_SEED, window_ms, slide_ms, batch)
        yield from (((stream, query), rule) for stream, query in edges)
