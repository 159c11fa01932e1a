"""What a node of the tree computes from its own operators and the messages of its neighbours.

Three passes (sections 6.2, 6.3): a summary from the children to the parent, settings from the
parent to the children, and tables from the children to the parent.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algorithms.lab.shedding.fit.chain import chain_table
from algorithms.lab.shedding.fit.leaf import NUMBER_BYTES, Settings, linear_table, split_table
from algorithms.lab.shedding.fit.local import LocalModel, Worth
from algorithms.lab.shedding.fit.mixture import mixture_table
from algorithms.lab.shedding.fit.sampling import Precision
from algorithms.lab.shedding.fit.table import RowPlans, Table


@dataclass(frozen=True, eq=False)
class Summary:
    """What a node publishes of its subtree before anything is sampled.

    `least`: a lower bound of the results of the subtree at any infeasible rates; `sampled`: the
    streams that its nodes sample; `stages`: how often rates are rounded on the way to a root.
    """

    worth: Worth
    least: float
    sampled: int
    stages: int

    @property
    def key(self) -> tuple[object, ...]:
        """Return the contents, to compare summaries."""
        worth = self.worth
        return (
            worth.streams,
            worth.values.tobytes(),
            worth.free.tobytes(),
            self.least,
            self.sampled,
            self.stages,
        )

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return (2 * len(self.worth.streams) + 3) * NUMBER_BYTES


def summarize(local: LocalModel, children: Mapping[str, Summary]) -> Summary:
    """Return the summary of a subtree."""
    worths = {child: item.worth for child, item in children.items()}
    worth = local.worth(worths)
    used = local.limits > 0
    ratios = np.divide(worth.values, local.limits, out=np.full(used.shape, np.inf), where=used)
    below = [*children.values()]
    least = min([float(ratios.min(initial=np.inf)), *(item.least for item in below)])
    own = len(worth.values)
    stages = max((item.stages for item in below), default=0)
    if below and _maps_rows(local, worths):
        own = int((~local.through).sum())
        stages = max(stages, 1 if own else 0)
    else:
        stages += 1
    return Summary(worth, least, own + sum(item.sampled for item in below), stages)


def _maps_rows(local: LocalModel, worths: Mapping[str, Worth]) -> bool:
    """Return whether the node maps rows of its children, without another rounding."""
    return local.is_chain and not local.outlet_values(worths)[1].any()


def root_settings(summary: Summary, epsilon: float, *, outer: bool = True) -> Settings:
    """Return the settings with which the plans of a tree lose at most the part epsilon.

    Half of it is the spread of samples, which multiplies over stages; the other half are the steps
    down to 0, which add up over all sampled streams. `outer`: see `Settings`.
    """
    spread = 1 - (1 - epsilon / 2) ** (1 / summary.stages)
    loss = epsilon / 2 * summary.least / summary.sampled
    streams = len(summary.worth.streams)
    limits = np.zeros((0, streams))
    return Settings(Precision(spread, loss), limits, outer, epsilon if outer else 0.0)


def child_settings(
    local: LocalModel, worths: Mapping[str, Worth], settings: Settings
) -> dict[str, Settings]:
    """Return the settings of each child.

    A node that maps rows passes its limits down, and those from above. If it has one child, and no
    stream ends on it, then the child knows all limits upstream. Other nodes pass the largest rates
    that can arrive.
    """
    result = {}
    maps = _maps_rows(local, worths)
    is_sole = len(local.cluster.outlets) == 1 and bool(local.through.all())
    limits = np.vstack([local.limits, settings.limits])
    arrivals = local.largest_arrivals(settings.limits)
    first = 0
    for child, pairs in local.cluster.outlets.items():
        gains = local.gains[first : first + len(pairs)]
        if maps:
            streams = gains.argmax(axis=1)
            passed = limits[:, streams] / gains[np.arange(len(pairs)), streams]
            outer, epsilon = settings.outer and is_sole, settings.epsilon if is_sole else 0.0
            passed = passed[(passed > 0).any(axis=1)]
        else:
            passed = np.diag(1 / arrivals[first : first + len(pairs)])
            passed, outer, epsilon = passed[passed.any(axis=1)], True, 0.0
        first += len(pairs)
        result[child] = Settings(settings.precision, passed, outer, epsilon)
    return result


def build_table(
    local: LocalModel,
    summary: Summary,
    worths: Mapping[str, Worth],
    settings: Settings,
    children: Mapping[str, Table],
) -> tuple[Table, RowPlans]:
    """Return the table of a node and its plans."""
    worth = summary.worth
    if not children and not local.has_splits:
        return linear_table(local, settings, worth)
    if not children and len(local.network.nodes) == 1:
        return split_table(local, settings, worth)
    if _maps_rows(local, worths) and children:
        return chain_table(local, settings, worth, children)
    return mixture_table(local, settings, worth, children, worths)
