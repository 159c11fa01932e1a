"""The workloads of section 6.1.1: rates of streams over time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.admission.metadata import StreamMetadata, Transition
from algorithms.vocabulary import Floats, Seed


@dataclass(frozen=True, eq=False)
class Workload:
    """The rates of s streams in each of n steps, and what is known of them.

    `rates` float64[s, n]: expected records/s; `metadata`: one per stream; `step_s`: seconds of a
    step; `drawn`: whether the records of a step are drawn (Poisson) or are just the rate.
    """

    rates: Floats
    metadata: tuple[StreamMetadata, ...]
    step_s: float
    drawn: bool = True


# The share of a cycle with the high rate.
HIGH_SHARE: Final = 0.5


@dataclass(frozen=True)
class WorkloadSettings:
    """Parameters of the synthetic workloads.

    `streams`: their number, even; `level`: the number of split nodes of `capacity` records/s that
    the average load saturates; `steps` of `step_s` seconds; `cycle_s`: seconds of a cycle between
    low and high rates; `swing`: high rate divided by low rate.
    """

    streams: int = 80
    level: float = 8.0
    capacity: float = 1_000.0
    steps: int = 2_400
    step_s: float = 1.0
    cycle_s: float = 400.0
    swing: float = 3.0

    @property
    def times(self) -> Floats:
        """Return the start of each step in seconds."""
        times: Floats = np.arange(self.steps, dtype=np.float64) * self.step_s
        return times

    def means(self, rng: np.random.Generator) -> Floats:
        """Return average rates of the streams, uniform between a minimum and three times it."""
        drawn = rng.uniform(1.0, 3.0, self.streams)
        means: Floats = drawn * (self.level * self.capacity / drawn.sum())
        return means


def constw(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """Constant rates; the records arrive with exponential gaps."""
    means = settings.means(rng)
    metadata = [StreamMetadata(rate=m, average=m, maximum=m) for m in means.tolist()]
    return Workload(
        np.repeat(means[:, None], settings.steps, axis=1), tuple(metadata), settings.step_s
    )


def _fluctuating(
    settings: WorkloadSettings, rng: np.random.Generator, transition: Transition, *, in_pairs: bool
) -> Workload:
    """Return rates between low and high; in opposite pairs of equal rates, or all together."""
    means = settings.means(rng)
    phases = np.zeros(settings.streams)
    if in_pairs:
        means[1::2] = means[::2]
        means *= settings.level * settings.capacity / means.sum()
        phases = np.repeat(rng.uniform(0.0, 1.0, settings.streams // 2), 2)
        phases[1::2] += 0.5
    else:
        # Not in the same instant: the streams of a site change within a tenth of the cycle.
        phases = rng.uniform(0.0, 0.1, settings.streams)
    low = means * 2 / (1 + settings.swing)
    high = low * settings.swing
    place = (settings.times / settings.cycle_s + phases[:, None]) % 1.0
    if transition is Transition.JUMP:
        share = (place < HIGH_SHARE).astype(np.float64)
    else:
        share = 1 - np.abs(1 - 2 * place)
    rates = low[:, None] + (high - low)[:, None] * share
    metadata = [
        StreamMetadata(
            average=(lo + hi) / 2, minimum=lo, maximum=hi, period_s=settings.cycle_s,
            high_s=settings.cycle_s / 2, transition=transition,
        )
        for lo, hi in zip(low.tolist(), high.tolist(), strict=True)
    ]  # fmt: skip
    return Workload(rates, tuple(metadata), settings.step_s)


def psfcw(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """Pairs jump between low and high, opposite of each other; the total is constant."""
    return _fluctuating(settings, rng, Transition.JUMP, in_pairs=True)


def ptfcw(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """Pairs rise and fall evenly, opposite of each other; the total is constant."""
    return _fluctuating(settings, rng, Transition.TREND, in_pairs=True)


def sfvar(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """All streams jump between low and high."""
    return _fluctuating(settings, rng, Transition.JUMP, in_pairs=False)


def tfvar(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """All streams rise and fall evenly."""
    return _fluctuating(settings, rng, Transition.TREND, in_pairs=False)


def bursty(settings: WorkloadSettings, rng: np.random.Generator) -> Workload:
    """On-off streams: exponential bursts at a fixed rate, exponential pauses of equal length."""
    means = settings.means(rng)
    mean_s = settings.cycle_s / 8
    high = 2 * means
    on = np.zeros((settings.streams, settings.steps), np.bool_)
    for stream in range(settings.streams):
        gaps = rng.exponential(mean_s, int(4 * settings.steps * settings.step_s / mean_s) + 16)
        changes = np.searchsorted(np.cumsum(gaps), settings.times, side="right")
        on[stream] = (changes + rng.integers(2)) % 2 == 1
    metadata = [
        StreamMetadata(average=m, minimum=0.0, maximum=2 * m, burst_s=mean_s, pause_s=mean_s)
        for m in means.tolist()
    ]
    return Workload(np.where(on, high[:, None], 0.0), tuple(metadata), settings.step_s)


WORKLOADS: Final[Mapping[str, Callable[[WorkloadSettings, np.random.Generator], Workload]]] = {
    "constw": constw,
    "psfcw": psfcw,
    "ptfcw": ptfcw,
    "sfvar": sfvar,
    "tfvar": tfvar,
    "bursty": bursty,
}


def draw(name: str, settings: WorkloadSettings, seed: Seed) -> Workload:
    """Return the workload of a name. Raises `KeyError`."""
    return WORKLOADS[name](settings, np.random.default_rng(seed))
