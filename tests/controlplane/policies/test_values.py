"""Decisions, records and reviews are values: equal by content, and nobody changes them later."""

import importlib
import pkgutil
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

import pytest

from controlplane import executions, policies, proposals


def values_of(package: ModuleType) -> list[Any]:
    """Return the dataclasses that the modules of a package define."""
    modules = [
        importlib.import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
    ]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("package", [executions, policies, proposals])
def test_dataclasses_cannot_be_changed(package: ModuleType) -> None:
    values = values_of(package)
    assert values
    assert [kind.__name__ for kind in values if not kind.__dataclass_params__.frozen] == []
