"""Which Java is taken, and what is said of those that are not."""

import os
import subprocess
from pathlib import Path

import pytest

from controlplane.processes.runtime.errors import CheckFailed
from controlplane.processes.runtime.java import VECTOR, find_java, major_version, write_shim


def fake_java(home: Path, version: str, *, modules: bool = True) -> Path:
    """Write a Java that says `version` and, without modules, refuses the one Spark asks for."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    refusal = "" if modules else f'[ "$1" = {VECTOR} ] && exit 1\n'
    binary.write_text(f"#!/bin/sh\n{refusal}echo 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25)]
)
def test_reads_old_and_new_version_strings(tmp_path: Path, version: str, major: int) -> None:
    """Java 8 calls itself 1.8; taken at its word it would be version 1."""
    assert major_version(fake_java(tmp_path, version) / "bin" / "java") == major


def test_an_old_java_home_is_told_and_the_one_on_path_taken(tmp_path: Path) -> None:
    """A machine-wide JAVA_HOME of an old project must not keep Weir from starting."""
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "17.0.1")
    said: list[str] = []
    env = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    java = find_java(env, tmp_path / "shim", said.append)
    assert (java.home, java.major, java.origin) == (new, 17, "PATH")
    assert len(said) == 1
    assert "JAVA_HOME" in said[0]
    assert "is version 11" in said[0]


def test_a_broken_java_home_is_passed_over(tmp_path: Path) -> None:
    """JAVA_HOME may name a folder that is gone since an upgrade."""
    new = fake_java(tmp_path / "new", "21.0.1")
    said: list[str] = []
    env = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(new / "bin")}
    assert find_java(env, tmp_path / "shim", said.append).home == new
    assert "does not run" in said[0]


def test_a_link_on_path_is_followed_home(tmp_path: Path) -> None:
    """Debian's /usr/bin/java is a link; its folder is not a JAVA_HOME."""
    real = fake_java(tmp_path / "real", "17.0.1")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "java").symlink_to(real / "bin" / "java")
    assert find_java({"PATH": str(folder)}, tmp_path / "shim", lambda _: None).home == real


def test_a_java_without_the_vector_module_gets_a_stand_in(tmp_path: Path) -> None:
    """Trimmed runtimes refuse the argument that Spark's launcher always passes."""
    trimmed = fake_java(tmp_path / "trimmed runtime", "17.0.1", modules=False)
    env = {"JAVA_HOME": str(trimmed), "PATH": os.defpath}
    java = find_java(env, tmp_path / "shim", lambda _: None)
    assert java.home == tmp_path / "shim"
    command = [str(java.home / "bin" / "java"), VECTOR, "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_stand_in_passes_every_other_argument_on_unchanged(tmp_path: Path) -> None:
    """Class paths hold stars and blanks: the shell must not touch them."""
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    shim = write_shim(tmp_path / "shim", echo)
    arguments = ["-cp", "/jars dir/*", VECTOR, "--add-modules=other", "", "$HOME"]
    told = subprocess.run(
        [str(shim / "bin" / "java"), *arguments], capture_output=True, text=True, check=True
    )
    assert told.stdout.split("\n")[:-1] == [a for a in arguments if a != VECTOR]


def test_without_any_java_the_advice_names_a_package(tmp_path: Path) -> None:
    """The person who reads it may never have installed a Java."""
    with pytest.raises(CheckFailed) as caught:
        find_java({"PATH": str(tmp_path)}, tmp_path, lambda _: None, wheel=tmp_path / "none")
    assert "apt-get install openjdk-17-jre-headless" in caught.value.advice
