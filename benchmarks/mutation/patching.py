"""Mutation of a loaded module: the code of its functions is replaced where they are bound.

Importing a mutated module again would not reach what others imported from it by name.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


def patched(path: str, original: str, mutated: str) -> bool:
    """Replace the code of the live functions of a module; return whether that is all that differs.

    False, and nothing replaced, if the body of the module or of a class differs: constants,
    defaults of arguments, decorators.
    """
    # Functions are recognized by their line, too.
    missing = original.count("\n") - mutated.count("\n")
    before, after = (compile(text, path, "exec") for text in (original, mutated))
    pairs = None if missing else _changed(before, after)
    if not pairs:
        return False
    gc.unfreeze()
    functions = [
        (function, pairs[function.__code__])
        for function in gc.get_objects()
        # isinstance would compute lazy values, as of a user.
        if type(function) is FunctionType
        and function.__code__ in pairs
        and Path(function.__code__.co_filename).as_posix().endswith(path)
    ]
    if {function.__code__ for function, _ in functions} != pairs.keys():
        return False
    for function, code in functions:
        function.__code__ = code
    return True


def _changed(before: CodeType, after: CodeType) -> dict[CodeType, CodeType] | None:
    """Return the functions that differ, None if something else does."""
    if _body(before) != _body(after):
        return None
    pairs: dict[CodeType, CodeType] = {}
    for old, new in zip(_nested(before), _nested(after), strict=True):
        if old == new:
            continue
        if _is_function(old):
            pairs[old] = new
            continue
        inner = _changed(old, new)
        if inner is None:
            return None
        pairs |= inner
    return pairs


def _is_function(code: CodeType) -> bool:
    # Bodies of classes share no local variables with an optimized frame.
    return bool(code.co_flags & 0x1)


def _body(code: CodeType) -> tuple[object, ...]:
    constants = tuple(
        (type(value), value) for value in code.co_consts if not isinstance(value, CodeType)
    )
    return code.co_code, code.co_names, constants, len(list(_nested(code)))


def _nested(code: CodeType) -> Iterator[CodeType]:
    return (value for value in code.co_consts if isinstance(value, CodeType))
