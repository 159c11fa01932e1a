"""The dataclasses of policies are values: equal by content, and nobody changes them later."""

from controlplane import policies
from tests.support.values import dataclasses_of, mutable_dataclasses


def test_dataclasses_cannot_be_changed() -> None:
    assert dataclasses_of(policies)
    assert mutable_dataclasses(policies) == set()
