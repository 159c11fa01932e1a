"""The values of a period as bytes: two-byte codes of the series, subjects, and their values.

A series has the code of its name, so that declarations may be added, removed and reordered. Those
of thousands of streams are compressed.
"""

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.wire.figures import SERIES

# Half the size of the raw arrays, at a third of the time of the default level.
_LEVEL: Final = 1
# Smaller ones are read in less time than they are decompressed.
_LARGE: Final = 16_384
_PLAIN: Final = b"\0"
_COMPRESSED: Final = b"\1"
_CODE_BYTES: Final = 2


def code_of(name: str) -> int:
    """Return the code of a series, of two bytes."""
    return zlib.crc32(name.encode()) & 0xFFFF


_NAMES: Final = {code_of(figure.name): figure.name for figure in SERIES}


def pack(subjects: Floats, values: Mapping[str, Floats]) -> bytes:
    """Return the bytes of series of n subjects: `subjects` float64[n], `values` float64[n] each."""
    codes = np.array([len(values), *map(code_of, values)], "<u2")
    arrays = np.concatenate([subjects, *values.values()]).astype("<f8")
    raw = codes.tobytes() + arrays.tobytes()
    return _PLAIN + raw if len(raw) < _LARGE else _COMPRESSED + zlib.compress(raw, _LEVEL)


def unpack(data: bytes) -> tuple[Floats, dict[str, Floats]]:
    """Return subjects and values by name, read-only; series that are not declared are left out."""
    raw = zlib.decompress(data[1:]) if data[:1] == _COMPRESSED else bytes(data[1:])
    start = _CODE_BYTES * (1 + int.from_bytes(raw[:_CODE_BYTES], "little"))
    names = _names_of(raw[:start])
    arrays = np.frombuffer(raw, "<f8", offset=start).reshape(1 + len(names), -1)
    return arrays[0], {
        name: values for name, values in zip(names, arrays[1:], strict=True) if name is not None
    }


@lru_cache(maxsize=256)
def _names_of(header: bytes) -> tuple[str | None, ...]:
    return tuple(_NAMES.get(int(code)) for code in np.frombuffer(header, "<u2")[1:])
