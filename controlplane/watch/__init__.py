"""Watch loops: what Weir sees by itself, and proposes or does about it; the front door."""

from controlplane.watch.codes import CODES, Code
from controlplane.watch.cycle import watch, watch_cluster
from controlplane.watch.decision_log import prune
from controlplane.watch.loops import LOOPS
from controlplane.watch.review import judge

__all__ = ["CODES", "LOOPS", "Code", "judge", "prune", "watch", "watch_cluster"]
