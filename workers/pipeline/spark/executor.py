"""Which of Spark's executors a Python worker belongs to."""

import os
import socket
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import parse_qs, urlsplit

# In a `local[n]` master the driver's own JVM runs the nodes.
_DRIVER: Final = "driver"


@cache
def executor() -> str:
    """Return host and executor of this process, as `host/3` or `host/driver`."""
    return f"{socket.gethostname()}/{executor_id(os.environ)}"


def executor_id(environment: Mapping[str, str]) -> str:
    """Return the executor id from a Python worker's environment.

    Kubernetes names it outright, YARN its container, a standalone cluster where its log is read.
    """
    logs = parse_qs(urlsplit(environment.get("SPARK_LOG_URL_STDERR", "")).query)
    result = (
        environment.get("SPARK_EXECUTOR_ID", ""),
        environment.get("CONTAINER_ID", ""),
        *logs.get("executorId", ()),
    )
    return next((item for item in result if item), _DRIVER)
