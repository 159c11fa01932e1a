"""The folder of the recorded data sets that some experiments read, and the reader of its tables."""

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.vocabulary import Ints

# Names the folder with the data files; without it, `shared/data` beside the project.
DATA_FOLDER: Final = "WEIR_DATASETS"


def data_folder() -> Path:
    """Return the folder with the data files."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    return Path(os.environ.get(DATA_FOLDER) or beside)


def read_columns(path: Path, names: tuple[str, ...]) -> dict[str, Ints]:
    """Return columns of whole numbers or timestamps of a Parquet file, int64; times in ms.

    Raises `BadProblem` where the file or one of its columns is missing.
    """
    # Only the recorded workloads need pyarrow.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not path.is_file():
        raise BadProblem(str(path), "is not a file")
    known = set(pq.read_schema(path).names)
    if missing := [name for name in names if name not in known]:
        raise BadProblem(str(path), f"has no column {', '.join(missing)}")
    table = pq.read_table(path, columns=list(names))
    return {name: _integers(table.column(name).combine_chunks(), pa) for name in names}


def _integers(column: Any, pa: Any) -> Ints:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
