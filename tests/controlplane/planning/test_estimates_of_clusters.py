"""The estimate of a plan of load shedding bounds the memory that it needs on a cluster."""

from benchmarks.availability.estimates import measured_needs


def test_the_estimate_of_a_ladder_bounds_its_memory() -> None:
    """All planners and larger clusters: `python -m benchmarks.availability.estimates`."""
    (need,) = measured_needs(300, ["shedding"])
    assert need.refusal == ""
    assert 0 < need.measured.bytes <= need.estimate.bytes
