"""What most processes of Weir load: the children of the runner are forked from one that has.

Nothing here starts threads, opens connections or reads the variables of a single child.
"""

import os
from importlib import import_module
from typing import Final

import django

from controlplane.installation import env

MODULES: Final = (
    "workers.tasks",
    "workers.agent.fleet",
    "workers.agent.gate",
    "workers.relay.relay",
    "celery.bin.celery",
    "celery.apps.worker",
    "scipy.optimize",
    "uvicorn",
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
# As in `processes.asgi`: the library of metrics decides with its import.
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(env.data_dir() / "request-metrics"))
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

for name in (settings.ROOT_URLCONF, *MODULES):
    import_module(name)
