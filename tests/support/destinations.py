"""The list of destinations in tests: servers of tests listen at any port of this machine."""

from typing import Final

import pytest

from controlplane.wire.network.destinations import LIST

LOGS: Final = "redis://127.0.0.0/8:1-65535 kafka://127.0.0.0/8:1-65535"
RECEIVERS: Final = "http://127.0.0.0/8:1-65535"


def list_destinations(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Let the site connect to servers of tests in Redis and Kafka, and to these destinations."""
    monkeypatch.setenv(LIST, f"{LOGS} {words}")
