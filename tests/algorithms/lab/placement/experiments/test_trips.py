"""The experiments on real trips."""

from pathlib import Path

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiments import experiment
from algorithms.lab.placement.experiments.trips import RealTrips


def test_trips_can_have_their_tiles_rates_or_all_one() -> None:
    """The graph is the same; the reports of all tiles come to 5.56 per second."""
    real, plain = RealTrips().problem(0), RealTrips(real_rates=0).problem(0)
    assert real.indices.tolist() == plain.indices.tolist()
    assert real.live_rate == pytest.approx(5.56, abs=0.01)
    assert np.unique(plain.rates).tolist() == [1.0]


def test_trips_run_on_any_number_of_servers() -> None:
    """On one server nothing is delivered twice; at random nearly everything everywhere."""
    one = experiment("placement", "trips")
    table = one.run(RealTrips(), [1, 10], ["off_rand"])
    single, ten = table.column("replication_factor")
    assert single == 1.0
    assert isinstance(ten, float)
    assert 9 < ten <= 10


def test_without_the_data_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs it elsewhere learns where the files should be."""
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    one = experiment("placement", "trips")
    with pytest.raises(BadProblem, match=str(tmp_path)):
        one.run(RealTrips(), [10])
