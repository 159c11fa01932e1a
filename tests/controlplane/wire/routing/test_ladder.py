"""Ladders: their JSON, their bounds at the door, and the action that arms them."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.cluster_actions import SetLadder, SetSplitCount
from controlplane.wire.routing.ladder import (
    MAX_RUNGS,
    MAX_WINDOWS,
    Cost,
    KeptPart,
    Ladder,
    ResourceKind,
    Rung,
    WindowDrop,
)
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from tests.support.ladders import input_ladder, ladders

GIVEN = input_ladder(1, 0.001)


@given(ladders())
def test_json_round_trip(ladder: Ladder) -> None:
    ladder.check()
    assert Ladder.from_json(json.loads(json.dumps(ladder.to_json()))) == ladder


def _parts(*parts: KeptPart) -> Ladder:
    return replace(GIVEN, rungs=(Rung(2.0, parts),))


def _costs(seconds: float) -> Ladder:
    return replace(GIVEN, costs=(Cost(1, 0, ResourceKind.NODE, 0, seconds),))


def _windows(*windows: WindowDrop) -> Ladder:
    return replace(GIVEN, windows=windows)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GIVEN, rungs=()),
        replace(GIVEN, rungs=(Rung(2.0, ()), Rung(1.5, ()))),
        replace(GIVEN, rungs=(Rung(math.nan, ()),)),
        replace(GIVEN, rungs=(Rung(0.0, ()),)),
        replace(GIVEN, rungs=tuple(Rung(1.0 + k, ()) for k in range(MAX_RUNGS + 1))),
        _parts(KeptPart(1, 0, 1.5)),
        _parts(KeptPart(1, 0, math.nan)),
        _parts(KeptPart(1, 0, 0.5), KeptPart(1, 0, 0.4)),
        _costs(-1.0),
        _costs(math.inf),
        _costs(math.nan),
        replace(GIVEN, limit=0.0),
        replace(GIVEN, limit=1.5),
        replace(GIVEN, hold_ms=-1),
        replace(GIVEN, drain_ms=0),
        _windows(WindowDrop(1, 1, 1000, 2000)),
        _windows(WindowDrop(1, 1, 1000, 0)),
        _windows(WindowDrop(1, 1, 1000, 1000), WindowDrop(1, 1, 2000, 1000)),
        _windows(*(WindowDrop(1, query, 1, 1) for query in range(MAX_WINDOWS + 1))),
    ],
)
def test_wrong_ladder_is_refused(wrong: Ladder) -> None:
    with pytest.raises(InconsistentDelta):
        RoutingTable().apply(RoutingDelta(1, (SetLadder(wrong),)))


def test_ladder_is_armed_replaced_disarmed_and_reverted() -> None:
    other = replace(GIVEN, hold_ms=0)
    table = RoutingTable().apply(RoutingDelta(1, (SetLadder(GIVEN), SetSplitCount(1))))
    changed = table.apply(RoutingDelta(2, (SetLadder(other),)))
    disarmed = changed.apply(RoutingDelta(3, (SetLadder(),)))
    assert (table.ladder, changed.ladder, disarmed.ladder) == (GIVEN, other, None)
    assert SetLadder().inverse(changed.draft()) == (SetLadder(other),)
    assert SetLadder(GIVEN).inverse(disarmed.draft()) == (SetLadder(),)
