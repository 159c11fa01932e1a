"""axe-core: the rules of WCAG 2.2 AA, run in the page of a test."""

from dataclasses import dataclass
from typing import Any, Final

from playwright.sync_api import Page

from controlplane.installation.assets.folders import environment_folder
from controlplane.installation.assets.npm_package import NpmFile

VERSION: Final = "4.14.1"
_FILE: Final = NpmFile(
    "axe-core",
    VERSION,
    "package/axe.min.js",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# In another theme, nothing but colours differs.
COLOURS: Final = ["color-contrast"]
_RUN: Final = """async ([rules, without]) => {
  const runOnly = rules ? {type: 'rule', values: rules} : {type: 'tag', values: TAGS};
  const parts = without ? {exclude: [without]} : document;
  const result = await axe.run(parts, {runOnly, resultTypes: ['violations']});
  return result.violations.map((v) => [v.id, v.impact, v.nodes.map((n) => n.target.join(' '))]);
}""".replace("TAGS", str(_TAGS))


@dataclass(frozen=True)
class Violation:
    """A rule that elements of a page break; `impact`: minor, moderate, serious or critical."""

    rule: str
    impact: str
    elements: tuple[str, ...]

    @property
    def is_serious(self) -> bool:
        """Return True if a person with a disability cannot use a part of the page."""
        return self.impact in ("serious", "critical")


def axe_source() -> str:
    """Return axe-core; the first call downloads it into the Python environment.

    Raises OSError if the registry cannot be reached.
    """
    target = environment_folder() / f"axe-core-{VERSION}.min.js"
    return _FILE.install(target).read_text()


def violations(
    page: Page, rules: list[str] | None = None, without: str | None = None
) -> list[Violation]:
    """Return what the page breaks of the rules, by default of all of WCAG 2.2 A and AA.

    The page has axe-core by `add_init_script(axe_source())`. `without`: a selector of what is not
    judged.
    """
    rows: list[Any] = page.evaluate(_RUN, [rules, without])
    return [Violation(rule, impact, tuple(elements)) for rule, impact, elements in rows]
