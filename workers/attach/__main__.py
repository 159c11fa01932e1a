"""`python -m workers.attach weir-attach.zip`: the client alone, for --py-files or PYTHONPATH."""

import argparse
import sys
import zipfile
from pathlib import Path

ROOM = Path(__file__).parent


def write_zip(target: Path) -> None:
    """Write a zip from which `from workers.attach import attach` works, without the rest."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("workers/__init__.py", "")
        for source in sorted(ROOM.glob("*.py")):
            file.write(source, f"workers/attach/{source.name}")


def main() -> int:
    """Write the zip that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m workers.attach", description=__doc__)
    parser.add_argument("zip", type=Path, help="the file to write")
    write_zip(parser.parse_args().zip)
    return 0


if __name__ == "__main__":
    sys.exit(main())
