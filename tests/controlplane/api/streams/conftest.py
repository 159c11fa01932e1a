from collections.abc import Iterator

import pytest

from controlplane.models import Cluster
from controlplane.wire.log import open_log
from controlplane.wire.log.values import Log


@pytest.fixture
def log(sf: Cluster, redis_url: str) -> Iterator[Log]:
    """The log of the cluster."""
    opened = open_log("", "sf", redis_url)
    yield opened
    opened.close()
