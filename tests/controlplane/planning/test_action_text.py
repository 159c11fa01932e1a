"""Texts of actions for people."""

import pytest

from algorithms.partitioning.catalog import GROUPINGS, grouping_text
from controlplane.planning.action_text import Names, action_text
from controlplane.plans.plan import OtherAction
from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.query_actions import SetKeyGrouping
from tests.support.ladders import input_ladder

KEY = GROUPINGS["key"].title
PARTIAL = GROUPINGS["partial_key"].title
ROOMY = f"{GROUPINGS['random_choices'].title} (uneven load allowed = 0.05)"


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ("", grouping_text("partial_key"), (KEY, PARTIAL)),
        (grouping_text("random_choices", {"eps": 0.05}), "", (ROOMY, KEY)),
        (grouping_text("partial_key"), grouping_text("random_choices", {"eps": 0.05}),
         (PARTIAL, ROOMY)),
    ],
)  # fmt: skip
def test_a_key_grouping_has_its_title_and_the_parameters_that_are_given(
    before: str, after: str, texts: tuple[str, str]
) -> None:
    planned = OtherAction(SetKeyGrouping(3, after), (SetKeyGrouping(3, before),))
    text = action_text(planned, Names(queries={3: "hot"}))
    assert (text.kind, text.title, text.object) == ("set_key_grouping", "Key grouping", "hot")
    assert (text.before, text.after) == texts


def test_a_ladder_has_its_rungs_and_its_last_factor() -> None:
    ladder = input_ladder(1, 0.01, parts=(0.5, 0.25))
    text = action_text(OtherAction(SetLadder(ladder), (SetLadder(),)), Names())
    assert (text.kind, text.title, text.object) == (
        "set_ladder", "Shedding plan", "the cluster",
    )  # fmt: skip
    assert text.before == "not enabled"
    assert text.after == "2 drop levels, up to 4 times what the cluster can process"
