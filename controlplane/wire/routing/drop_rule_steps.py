"""Steps of drop rules: changes of the dropped share that never drop a window in part.

A new share takes effect at the first group of windows without records. The step of an earlier
group is kept as long as records may arrive for the group.
"""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.wire.routing.drop_rules import ALWAYS, DropRule, Step


def first_group(rule: DropRule, after_ms: int | None) -> int:
    """Return the start (ms) of the first group of windows without records up to `after_ms`.

    None: no record was ever seen.
    """
    if after_ms is None:
        return ALWAYS
    group = rule.slide_ms * rule.batch
    return (after_ms // group + 1) * group


def add_step(rule: DropRule, since_ms: int, share: float) -> DropRule | None:
    """Return the rule with another share from `since_ms` on; None if it drops nothing any more.

    Later steps are removed: no record has reached them.
    """
    before = [step for step in rule.steps if step[0] < since_ms]
    return _of(rule, [*before, (since_ms, share)])


def remove_old_steps(rule: DropRule, since_ms: int) -> DropRule | None:
    """Return the rule with the steps from `since_ms` on; None if it drops nothing any more."""
    return _of(rule, [step for step in rule.steps if step[0] >= since_ms])


def needed_since(rule: DropRule, oldest_ms: int) -> int | None:
    """Return the first needed step (ms) if no record before `oldest_ms` comes.

    A group of windows that begins before a step has records up to the end of its last window.
    None: all steps are needed.
    """
    reach = (rule.batch - 1) * rule.slide_ms + rule.window_ms
    stop = [since for since, _ in rule.steps if since + reach <= oldest_ms]
    # The first step alone has nothing before it that could go, unless it drops nothing itself.
    return stop[-1] if stop and (len(stop) > 1 or rule.steps[0][1] == 0) else None


def _of(rule: DropRule, steps: Sequence[Step]) -> DropRule | None:
    kept: list[Step] = []
    for step in steps:
        # Before the first step nothing is dropped, and the same share is no change.
        if step[1] != (kept[-1][1] if kept else 0.0):
            kept.append(step)
    return replace(rule, steps=tuple(kept)) if kept else None
