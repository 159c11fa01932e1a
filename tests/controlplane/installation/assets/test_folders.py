"""Where collected static files are."""

from pathlib import Path

import pytest

from controlplane.installation.assets import folders


def test_files_that_an_image_has_collected_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the environment cannot be written, which otherwise lets the data have them."""
    environment, data = tmp_path / "environment", tmp_path / "data"
    environment.mkdir()
    assert folders.static_root(environment, data) == environment / "static"
    monkeypatch.setattr("os.access", lambda *_: False)
    assert folders.static_root(environment, data) == data / "static"
    (environment / "static").mkdir()
    (environment / "static" / folders.MANIFEST).touch()
    assert folders.static_root(environment, data) == environment / "static"
