"""The documentation names every variable of the environment that Weir reads."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
READ: Final = re.compile(r"""env\.\w+\(\s*["']([A-Z_]+)["']""")


def test_every_variable_is_documented() -> None:
    """A variable that `controlplane.installation.env` reads is named on a page."""
    folders = ("algorithms", "controlplane", "dashboard", "workers")
    modules = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    variables = {name for module in modules for name in READ.findall(module.read_text())}
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert len(variables) > 50
    assert sorted(name for name in variables if f"`{name}`" not in pages) == []
