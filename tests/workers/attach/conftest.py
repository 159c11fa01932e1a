"""What the tests of attached jobs share."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _heard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Let warnings be heard, whatever earlier tests of the session have made of the loggers."""
    logger = logging.getLogger("weir.attach")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    caplog.set_level(logging.WARNING, "weir.attach")
