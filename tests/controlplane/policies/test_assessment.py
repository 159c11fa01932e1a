"""The assessment on an executed plan names every measure that it helped and harmed."""

import pytest

from controlplane.policies.assessment import Assessment, EffectKind
from controlplane.policies.grades import Grade

BEFORE = {"imbalance": 0.18, "traffic": 160.0, "replication_factor": 1.3, "latency_ms": 3700.0}
MEASURED = {"imbalance": 0.06, "traffic": 204.0, "replication_factor": 1.65, "latency_ms": 3750.0}


def test_all_measures_have_their_effect_and_those_above_a_limit_come_first() -> None:
    assessment = Assessment.of(BEFORE, MEASURED, {}, {"replication_factor": 1.7, "traffic": 190.0})
    effects = {row.measure: row.effect for row in assessment.effects}
    assert effects == {
        "imbalance": EffectKind.HELPED, "traffic": EffectKind.HARMED,
        "replication_factor": EffectKind.HARMED, "latency_ms": EffectKind.UNCHANGED,
    }  # fmt: skip
    harmed = assessment.with_effect(EffectKind.HARMED)
    assert [(row.measure, row.is_exceeded) for row in harmed] == [
        ("traffic", True), ("replication_factor", False),
    ]  # fmt: skip
    assert harmed[0].change == pytest.approx(0.275)
    assert Assessment.from_json(assessment.to_json()) == assessment


@pytest.mark.parametrize(
    ("measured", "grade"),
    [
        ({"imbalance": 0.06}, Grade.GOOD),
        ({"imbalance": 0.18}, Grade.WARN),
        ({"imbalance": 0.06, "latency_ms": 4500.0}, Grade.WARN),
        ({"imbalance": 0.06, "latency_ms": 5500.0}, Grade.BAD),
    ],
)
def test_a_harm_is_never_good(measured: dict[str, float], grade: Grade) -> None:
    assert Assessment.of(BEFORE, measured, {}, {"latency_ms": 5000.0}).grade is grade


def test_a_change_within_the_error_of_the_model_is_none() -> None:
    (effect,) = Assessment.of(BEFORE, {"traffic": 175.0}, {"traffic": 20.0}, {}).effects
    assert effect.effect is EffectKind.UNCHANGED
