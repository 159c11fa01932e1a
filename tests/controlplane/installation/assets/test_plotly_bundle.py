"""The partial bundle of Plotly is that of the package's version."""

from pathlib import Path

import pytest

from controlplane.installation.assets import plotly_bundle
from controlplane.installation.assets.plotly_bundle import (
    VERSION,
    partial_bundle,
    served_bundle,
    version_of,
    whole_bundle,
)


def test_both_bundles_have_one_version() -> None:
    """Figures are made for the version of the Python package."""
    assert version_of(whole_bundle()) == VERSION
    if partial_bundle().is_file():
        assert version_of(partial_bundle()) == VERSION
        assert served_bundle() == partial_bundle()


@pytest.mark.parametrize("head", [None, b"* plotly.js v1.0.0"])
def test_pages_load_the_whole_bundle_where_no_partial_one_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes | None
) -> None:
    """Without it, or after an update of the package."""
    if head is None:
        monkeypatch.setattr(plotly_bundle, "partial_bundle", lambda: tmp_path / "missing.js")
    else:
        (tmp_path / "whole.js").write_bytes(head)
        monkeypatch.setattr(plotly_bundle, "whole_bundle", lambda: tmp_path / "whole.js")
    assert served_bundle() == plotly_bundle.whole_bundle()
