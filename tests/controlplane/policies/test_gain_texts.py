"""Gains and measures as texts with their units."""

import pytest

from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import Unit
from controlplane.policies.gains import Gain, gain_between, value_text


def measure_of(unit: Unit) -> str:
    return next(name for name, measure in all_measures().items() if measure.unit == unit)


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.SHARE, 0.256, "26 %"),
        (Unit.RATIO, 1.256, "1.26"),
        (Unit.COUNT, 12345.0, "12,345"),
        (Unit.COUNT, 100.0, "100"),
        (Unit.COUNT, 99.96, "100"),
        (Unit.COUNT, 9.876, "9.88"),
        (Unit.COUNT, -12345.0, "-12,345"),
    ],
)
def test_a_value_has_its_unit(unit: Unit, value: float, text: str) -> None:
    assert value_text(all_measures()[measure_of(unit)], value) == text


def test_values_of_other_units_name_them() -> None:
    plain = {Unit.SHARE, Unit.RATIO, Unit.COUNT}
    others = [measure for measure in all_measures().values() if measure.unit not in plain]
    assert others
    for measure in others:
        assert value_text(measure, 1234.5) == f"1,234 {measure.unit}"


def test_a_gain_is_a_text_with_title_and_values() -> None:
    assert str(Gain("imbalance", 0.5, 0.2, 0.1)) == "imbalance from 20 % to 10 %"
    assert str(Gain("unknown", 0.5, 0.21234, 0.1)) == "unknown from 0.212 to 0.1"


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(2.0, 1.0, 0.5), (1.0, 2.0, -1.0), (0.0, 1.0, 0.0), (1e-6, 0.0, 0.0), (2e-6, 0.0, 1.0)],
)
def test_a_gain_is_a_share_of_what_was_before(before: float, after: float, share: float) -> None:
    gain = gain_between("placement", {"imbalance": before}, {"imbalance": after}, "imbalance")
    assert (gain.share, gain.before, gain.after) == (share, before, after)
