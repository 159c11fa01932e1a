"""The dataclasses of executions are values: equal by content, and nobody changes them later."""

from controlplane.proposals import executions
from tests.support.values import dataclasses_of, mutable_dataclasses


def test_dataclasses_cannot_be_changed() -> None:
    assert dataclasses_of(executions)
    assert mutable_dataclasses(executions) == set()
