"""A worker of previews in the process of a test."""

from typing import Any

import pytest

from controlplane.events.task_names import BROWSE_SOURCE, PREVIEW_QUERY
from controlplane.explain.drafts import preview as previews
from controlplane.processes.isolation import limits
from workers.preview import messages, service


def answer_at_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compute requests at once, by the code of their tasks; return the list of their bodies."""
    bodies: list[str] = []

    def send(name: str, body: str, **_: Any) -> None:
        bodies.append(body)
        {BROWSE_SOURCE: messages.run, PREVIEW_QUERY: service.run}[name](body)

    monkeypatch.setattr(previews, "send_on_commit", send)
    # How long a busy machine takes for a child is not a matter of tests.
    monkeypatch.setattr(limits, "PREVIEW_S", 60.0)
    return bodies
