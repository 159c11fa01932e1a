"""The dataclasses of proposals are values: equal by content, and nobody changes them later."""

from controlplane import proposals
from tests.support.values import dataclasses_of, mutable_dataclasses


def test_dataclasses_cannot_be_changed() -> None:
    assert dataclasses_of(proposals)
    assert mutable_dataclasses(proposals) == set()
