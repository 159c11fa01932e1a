"""The folder of the recorded data sets that some experiments read."""

import os
from pathlib import Path
from typing import Final

# Names the folder with the data files; without it, `shared/data` beside the project.
DATA_FOLDER: Final = "WEIR_DATASETS"


def data_folder() -> Path:
    """Return the folder with the data files."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get(DATA_FOLDER) or beside)
