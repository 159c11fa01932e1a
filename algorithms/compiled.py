"""Compilation of the hot loops, with the compiled code kept on disk between processes."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile `function` with numba on its first call; its static type stays what it was."""
    return cast("F", numba.njit(cache=True)(function))
