"""Decisions, records and reviews are values: equal by content, and nobody changes them later."""

from types import ModuleType

import pytest

from controlplane import executions, policies, proposals
from tests.support.values import dataclasses_of, mutable_dataclasses


@pytest.mark.parametrize("package", [executions, policies, proposals])
def test_dataclasses_cannot_be_changed(package: ModuleType) -> None:
    assert dataclasses_of(package)
    assert mutable_dataclasses(package) == set()
