"""Changing what an edge drops without dropping a window in part: further steps, and fewer.

A drop of whole windows takes a new share with the first group of windows of which no record has
been seen. What was decided for the groups before stays decided as long as records may come for
them; after that the step that decided it can go.
"""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.wire.routing.drop_rules import ALWAYS, DropRule, Step


def first_group(shed: DropRule, after_ms: int | None) -> int:
    """Return the start (ms) of the first group of windows without records up to `after_ms`.

    None: no record was ever seen.
    """
    if after_ms is None:
        return ALWAYS
    group = shed.slide_ms * shed.batch
    return (after_ms // group + 1) * group


def add_step(shed: DropRule, since_ms: int, share: float) -> DropRule | None:
    """Return the drop with another share from `since_ms` on; None if it drops nothing any more.

    Steps from there on go: no record they speak of has been seen.
    """
    before = [step for step in shed.steps if step[0] < since_ms]
    return _of(shed, [*before, (since_ms, share)])


def remove_old_steps(shed: DropRule, since_ms: int) -> DropRule | None:
    """Return the drop with the steps from `since_ms` on; None if it drops nothing any more."""
    return _of(shed, [step for step in shed.steps if step[0] >= since_ms])


def needed_since(shed: DropRule, oldest_ms: int) -> int | None:
    """Return the first needed step (ms) if no record before `oldest_ms` comes.

    A group of windows that begins before a step has records up to the end of its last window.
    None: all steps are needed.
    """
    reach = (shed.batch - 1) * shed.slide_ms + shed.window_ms
    stop = [since for since, _ in shed.steps if since + reach <= oldest_ms]
    # The first step alone has nothing before it that could go, unless it drops nothing itself.
    return stop[-1] if stop and (len(stop) > 1 or shed.steps[0][1] == 0) else None


def _of(shed: DropRule, steps: Sequence[Step]) -> DropRule | None:
    kept: list[Step] = []
    for step in steps:
        # Before the first step nothing is dropped, and the same share is no change.
        if step[1] != (kept[-1][1] if kept else 0.0):
            kept.append(step)
    return replace(shed, steps=tuple(kept)) if kept else None
