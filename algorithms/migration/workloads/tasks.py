"""Tasks of the two applications of section 6: work and bytes of state of each."""

import numpy as np

from algorithms.vocabulary import Floats

# Mandelbrot's shift of ranks in Zipf's law for English text.
_SHIFT = 2.7
# Bytes of a counter with its key, and of a pattern with its windows.
_WORD_BYTES = 40.0
_PATTERN_BYTES = 64.0


def word_count(
    tasks: int, seed: int, words: int = 50_000, exponent: float = 1.0
) -> tuple[Floats, Floats]:
    """Return work and state of counting words, each float64[m].

    Words are hashed to tasks; their frequencies follow the law of Zipf and Mandelbrot. A task's
    work is the share of its words in the text, its state one counter per word, so work is uneven
    and state is nearly even.
    """
    draw = np.random.default_rng((seed, 11))
    frequency = (np.arange(1, words + 1) + _SHIFT) ** -exponent
    task = draw.integers(0, tasks, words)
    work = np.bincount(task, frequency / frequency.sum(), tasks).astype(np.float64)
    state = np.bincount(task, minlength=tasks).astype(np.float64)
    return work, _WORD_BYTES * state


def frequent_patterns(
    tasks: int, seed: int, window: float = 90.0, patterns_per_second: float = 1e6
) -> tuple[Floats, Floats]:
    """Return work and state of mining frequent patterns, each float64[m].

    Nearly all patterns are rare, so a task's work is the number of its patterns in the window of
    so many seconds, and its state grows with it; both are about even.
    """
    draw = np.random.default_rng((seed, 12))
    patterns: Floats = window * patterns_per_second / tasks * draw.lognormal(0.0, 0.1, tasks)
    return patterns * draw.lognormal(0.0, 0.1, tasks), patterns * _PATTERN_BYTES
