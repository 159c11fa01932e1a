"""Watch loops: what Weir sees by itself, and proposes or does about it; the front door."""

from controlplane.services.watching.codes import CODES, Code
from controlplane.services.watching.judging import judge
from controlplane.services.watching.loops import LOOPS
from controlplane.services.watching.noting import prune
from controlplane.services.watching.passing import watch, watch_cluster

__all__ = ["CODES", "LOOPS", "Code", "judge", "prune", "watch", "watch_cluster"]
