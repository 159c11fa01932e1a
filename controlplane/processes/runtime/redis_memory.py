"""The memory limit of the Redis that Weir starts: a share of the memory of the machine."""

from pathlib import Path
from typing import Final

import psutil

from controlplane.installation import env

# Spark, the control plane and the page cache need the rest; the append-only file is rewritten by a
# copy of the process, which shares most of its pages.
SHARE: Final = 0.25
MIN_MB: Final = 256
_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")


def machine_memory(cgroup: Path = _CGROUP) -> int:
    """Return the bytes of memory of the machine, or of the container if it has fewer."""
    total = int(psutil.virtual_memory().total)
    try:
        limit = cgroup.read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def redis_memory() -> int:
    """Return the bytes of memory that Weir's Redis may use: WEIR_REDIS_MEMORY_MB, or a share."""
    default = max(MIN_MB, round(machine_memory() * SHARE) // 2**20)
    return env.integer("WEIR_REDIS_MEMORY_MB", default, minimum=64, maximum=2**24) * 2**20
