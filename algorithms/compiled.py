"""Compilation of the hot loops, with the compiled code kept on disk between processes."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile `function` with numba on its first call; its static type stays what it was."""
    return cast("F", numba.njit(cache=True)(function))


def inlined(function: F) -> F:
    """Compile `function` into its callers: in the hottest loops a call costs more than its work.

    What a call costs there is counting references to every array that it is given.
    """
    return cast("F", numba.njit(cache=True, inline="always")(function))
