"""The number of Spark partitions of an application: as many as its executors have cores.

More partitions than cores cost a task each per micro-batch and gain nothing, because nodes share
partitions (`spark/partition_keys.py`). Spark fixes the number when a checkpoint is begun.
"""

import os
import re
from typing import Final

_LOCAL: Final = re.compile(r"local(?:\[(\*|[0-9]+)(?:,[^\]]*)?\])?")


def partitions_for(master: str, wanted: int, nodes: int) -> int:
    """Return the number of partitions of a new checkpoint.

    `wanted`: what the cluster's settings ask for, 0 for on its own. That is the cores of a master
    `local[n]`; elsewhere the number of nodes, because an executor has one core and it is unknown
    how many executors there will be.
    """
    if wanted:
        return wanted
    return cores_of(master) or max(1, nodes)


def partition_warning(there: int | None, wanted: int) -> str:
    """Return a warning about a checkpoint's partitions; empty if they are as wanted.

    `there`: the partitions of the checkpoint, None for a new one.
    """
    if there is None or there == wanted:
        return ""
    return (
        f"the checkpoint has {there} Spark partitions and keeps them, {wanted} would fit "
        "its cores: stop the cluster and run `python -m workers.agent.repartition`"
    )


def cores_of(master: str) -> int | None:
    """Return the cores of a local master (`local` has one), None for a master of executors."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    cores = match[1] or "1"
    return os.cpu_count() or 1 if cores == "*" else int(cores)
