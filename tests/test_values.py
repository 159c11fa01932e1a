"""Dataclasses are values: equal by content, and nobody changes them later."""

from types import ModuleType

import pytest

from controlplane import policies, proposals
from tests.support.values import dataclasses_of, mutable_dataclasses
from workers.pipeline import engine

# Of the engine, what accumulates.
ACCUMULATE = {"BatchChanges", "Pages", "StreamClock", "_Position"}


@pytest.mark.parametrize(
    ("package", "mutable"),
    [(policies, set()), (proposals, set()), (engine, ACCUMULATE)],
)
def test_dataclasses_cannot_be_changed(package: ModuleType, mutable: set[str]) -> None:
    assert dataclasses_of(package)
    assert mutable_dataclasses(package) == mutable
