"""The declaration of the settings: optional fields have its bounds; faults name their cause."""

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.policies.settings import PolicyFault, PolicySettings, input_of, optional_fields


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("auto_gain", 0.5, 1.5),
        ("auto_moves", 4.0, 1.5),
        ("watch", "act", "sometimes"),
        ("watch_replication", 0.0, -0.5),
        ("auto_from", "08:30", "25:00"),
        ("four_eyes", True, 3),
        ("pause_ms", 86_400_000, 86_400_001),
    ],
)
def test_an_optional_field_has_the_bounds_of_its_setting(
    name: str, valid: object, invalid: object
) -> None:
    annotation, field = optional_fields()[name]
    adapter = TypeAdapter(annotation)
    assert adapter.validate_python(None) is None
    assert adapter.validate_python(valid) is not None
    with pytest.raises(ValidationError):
        adapter.validate_python(invalid)
    assert (field.default, field.title) == (None, PolicySettings.model_fields[name].title)


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        PolicySettings().auto_moves = 5


def test_a_fault_has_its_setting_and_its_message() -> None:
    fault = PolicyFault("auto_until", "differs")
    assert (fault.name, str(fault)) == ("auto_until", "differs")


def test_every_setting_has_an_input() -> None:
    kinds = {name: input_of(name)[0] for name in PolicySettings.model_fields}
    assert set(kinds.values()) == {"number", "flag", "choice", "many", "time"}
    assert {name for name, kind in kinds.items() if kind == "many"} == {"auto_kinds", "auto_days"}
    assert {name for name, kind in kinds.items() if kind == "time"} == {"auto_from", "auto_until"}
