"""Pages of the site that are files elsewhere in the repository; mkdocs.yml names this module."""

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
# Files of the repository beside docs/ are no pages: their names remain.
_OUTSIDE: Final = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?!decisions|operations)[\w/]+\.md)\)")


def anchor(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as GitHub forms it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the same anchors as GitHub."""
    config.mdx_configs["toc"]["slugify"] = anchor
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the README as the first page, the changes, and a list of the decisions."""
    readme = (ROOT / "README.md").read_text().replace("](docs/decisions)", "](decisions/index.md)")
    readme = readme.replace("](docs/", "](").replace("](CHANGELOG.md)", "](changelog.md)")
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    titles = {path.name: path.read_text().partition("\n")[0][2:] for path in decisions}
    rows = (f"- [{title}]({name})" for name, title in titles.items())
    pages = {
        "index.md": readme,
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        "decisions/index.md": "\n".join(("# Decisions", "", *rows)),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page without links to files that the site does not have."""
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)
