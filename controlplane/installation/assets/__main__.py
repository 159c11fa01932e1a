"""`python -m controlplane.installation.assets`: installs assets, and collects static files."""

import os
import sys

import django

from controlplane.installation.assets.plotly_bundle import install_partial_bundle
from controlplane.installation.assets.typeface import install_typeface


def main() -> int:
    """Install and collect; return the exit code, which is 0 also if something is not installed."""
    installed = (
        (install_partial_bundle, "pages load all of Plotly, because a part"),
        (install_typeface, "pages use the typeface of the system, because Inter"),
    )
    for install, effect in installed:
        try:
            install()
        except OSError as error:
            text = f"weir: {effect} could not be installed: {error}"
            print(text, file=sys.stderr)  # noqa: T201 - output of the command
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup(set_prefix=False)
    from controlplane.installation.assets.collection import collect_static  # noqa: PLC0415 - reads the settings

    collect_static()
    return 0


if __name__ == "__main__":
    sys.exit(main())
