"""What the parts of the engine exchange cannot be changed, but for what they accumulate."""

from tests.support.values import mutable_dataclasses
from workers.pipeline import engine


def test_only_what_accumulates_can_be_changed() -> None:
    assert mutable_dataclasses(engine) == {"BatchChanges", "Pages", "StreamClock", "_Position"}
