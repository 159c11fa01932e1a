"""Drivers start from the archive of Spark's classes that `make install` makes."""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from workers.agent import class_archive
from workers.agent.class_archive import VARIABLE, java_environment, make

# How Java's log names the source of a class from a dynamic archive.
FROM_ARCHIVE = "shared objects file (top)"


def java_home(folder: Path, *, archived: bool) -> Path:
    """A Java, as far as its files say."""
    server = folder / "lib" / "server"
    server.mkdir(parents=True)
    (folder / "lib" / "modules").write_text("classes")
    if archived:
        (server / "classes.jsa").write_text("archived classes")
    return folder


def test_a_trimmed_java_starts_without(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", archived=False)
    assert not make(home, tmp_path)
    assert java_environment(home, tmp_path) == {"JAVA_HOME": str(home)}


def test_nothing_is_named_that_is_not_there(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", archived=True)
    assert java_environment(home, tmp_path) == {"JAVA_HOME": str(home)}


def test_options_of_the_site_stay_as_they_are(tmp_path: Path) -> None:
    """Also those that repeat a word."""
    home = java_home(tmp_path / "java", archived=True)
    own = '--add-opens a/b=c --add-opens d/e=f -Dname="two  words"'
    archive = class_archive._archive(home, tmp_path)
    assert archive is not None
    archive.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, own)
        first, _, rest = java_environment(home, tmp_path)[VARIABLE].partition(" ")
    assert (first, rest) == (f"-XX:SharedArchiveFile={archive}", own)


@pytest.mark.nightly("spark")
@pytest.mark.spark
def test_spark_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    """The one of this environment; the options of a site come after it."""
    home = Path(os.environ["JAVA_HOME"])
    if not make(home):
        pytest.skip("this Java has no archive of its own classes")
    log = tmp_path / "classes.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, f"-Xlog:class+load:file={log}")
        variables = java_environment(home)
        option, own = variables[VARIABLE].split()
        assert own.startswith("-Xlog")
        patch.setenv(VARIABLE, variables[VARIABLE])
        assert java_environment(home) == variables, "not named twice"
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--version"]
    subprocess.run(command, env={**os.environ, **variables}, check=True, timeout=120)
    assert Path(option.partition("=")[2]).exists()
    assert log.read_text().count(FROM_ARCHIVE) > 100
