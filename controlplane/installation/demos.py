"""Demos of this site: `WEIR_DEMO` names their clusters."""

from typing import Final

from controlplane.installation import env

# The clusters of the demonstrations, by slug.
SLUGS: Final = ("sf", "web")
_NAME: Final = "WEIR_DEMO"


def demos() -> tuple[str, ...]:
    """Return the demonstrations to start with: `sf` by default, none where it is off.

    Raises `EnvironmentValueError` for a name that is not a demonstration.
    """
    value = env.text(_NAME, "1").lower()
    if value in env.FALSE:
        return ()
    if value in env.TRUE:
        return SLUGS[:1]
    names = tuple(dict.fromkeys(env.words(_NAME, value)))
    unknown = [name for name in names if name not in SLUGS]
    if unknown:
        wanted = f"must be 0, 1, or some of {', '.join(SLUGS)} separated by commas"
        raise env.EnvironmentValueError(_NAME, value, wanted)
    return names
