"""`python -m controlplane.installation.assets`: installs Plotly's bundle, collects static files."""

import os
import sys

import django

from controlplane.installation.assets.plotly_bundle import install_partial_bundle


def main() -> int:
    """Install and collect; return the exit code, which is 0 also without the partial bundle."""
    try:
        install_partial_bundle()
    except OSError as error:
        print(  # noqa: T201 - output of the command
            f"weir: pages load all of Plotly, because a part could not be installed: {error}",
            file=sys.stderr,
        )
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup(set_prefix=False)
    from controlplane.installation.assets.collection import collect_static  # noqa: PLC0415 - reads the settings

    collect_static()
    return 0


if __name__ == "__main__":
    sys.exit(main())
