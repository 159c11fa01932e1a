"""What WEIR_DEMO says."""

import pytest

from controlplane.installation.demos import demos
from controlplane.installation.env import EnvironmentValueError


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("", ("sf",)), ("1", ("sf",)), ("0", ()), ("web", ("web",)), ("web, sf,web", ("web", "sf"))],
)
def test_it_names_the_demonstrations(
    monkeypatch: pytest.MonkeyPatch, value: str, wanted: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WEIR_DEMO", value)
    assert demos() == wanted


def test_an_unknown_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_DEMO", "sf,moon")
    with pytest.raises(EnvironmentValueError, match="WEIR_DEMO"):
        demos()
