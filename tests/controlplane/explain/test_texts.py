"""Every code of an explanation has a sentence, and shifts of series are where they are made."""

import numpy as np
import pytest
from django.utils import timezone

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.units import ValueUnit, pair, quantity
from controlplane.explain.values import Remedy, RemedyReason
from controlplane.watch.series_shifts import exceeded_since, largest_shifts


def test_every_code_has_a_sentence() -> None:
    moment = timezone.now()
    for code in CauseCode:
        cause = Cause(code, moment, 5, "node 5", before=1.0, after=2.0, full_share=1.2, share=0.64)
        assert cause.text.endswith(".")
    for kind in ChangeKind:
        assert NearbyChange(kind, moment, "s", before=1.0, after=2.0, reason="why.").text
    for reason in RemedyReason:
        assert Remedy("placement", "placement", reason).text.endswith(".")


def test_numbers_have_their_units() -> None:
    assert quantity(1545.4, ValueUnit.RATE) == "1,545 records/s"
    assert quantity(3400, ValueUnit.MS) == "3.4 s"
    assert quantity(0.46, ValueUnit.SHARE) == "46 %"
    assert pair(118, 616, ValueUnit.RATE) == "from 118 to 616 records/s"
    assert pair(0.46, 0.08, ValueUnit.SHARE) == "from 46 to 8 %"


def test_a_shift_is_where_the_mean_changes() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 5, (2, 60))
    rows = np.array([[100.0] * 40 + [600.0] * 20, [100.0] * 60]) + noise
    rows[0, 7] = np.nan
    shifts = largest_shifts(rows)
    assert (shifts.places[0], shifts.is_sure(0), shifts.is_sure(1)) == (40, True, False)
    assert (shifts.before[0], shifts.after[0]) == pytest.approx((100, 600), abs=5)


def test_a_limit_is_exceeded_since_the_last_break() -> None:
    low, high = [1.0] * 5, [9.0] * 5
    assert exceeded_since(np.array([*high, *low, 9, 1, 9, 9]), 5) == 10
    assert exceeded_since(np.array([*high, np.nan, *high]), 5) == 0
    assert exceeded_since(np.array([*high, *low]), 5) is None
