"""A watch loop, of all clusters or of a planner."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from controlplane.models import Cluster, Proposal
from controlplane.policies.settings import PolicySettings
from controlplane.watch.decision import Situation
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import LoopReading


@dataclass(frozen=True)
class WatchLoop:
    """A loop: name, subject, and the measure that its plans must improve ("": any).

    `title`: what people call it, "" for its name. `order`: the lowest one is the most urgent.
    `limit`: the limit of the policy that plans keep.
    `is_measured`: False for a loop about the assignment of tasks, which decides also while the
    cluster catches up. `prepare` is called before each observation; `confirm` with a plan of the
    loop that is not better than what runs. `evaluate`: a loop that acts itself, after all others.
    """

    name: str
    about: str
    order: int
    read: Callable[[ClusterObservation], LoopReading]
    measure: str = ""
    limit: Callable[[PolicySettings], float] = lambda policy: policy.watch_imbalance
    is_measured: bool = True
    prepare: Callable[[Cluster], object] | None = None
    confirm: Callable[[Proposal], object] | None = None
    evaluate: Callable[[Cluster, PolicySettings, Situation, datetime], None] | None = None
    title: str = ""
