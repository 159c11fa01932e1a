"""Full disks of this machine."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from controlplane.installation import env
from controlplane.processes.runtime import checks


@dataclass(frozen=True, slots=True)
class FullDisk:
    """A directory of Weir on a full disk, with its free bytes."""

    path: str
    free: int

    def __str__(self) -> str:
        return (
            f"The disk of {self.path} is full ({self.free >> 20} MiB free). Weir cannot write there"
            " and shows old states. Free space; Weir then continues automatically"
        )


def full_disks() -> list[FullDisk]:
    """Return the full disks of the data directory and of the checkpoints.

    Read from the file system, as no report can be written to a full disk. Each disk is listed once.
    """
    directories = [Path(settings.DATA_DIR), Path(env.text("WEIR_CHECKPOINTS") or settings.DATA_DIR)]
    by_device: dict[int, FullDisk] = {}
    for directory in directories:
        try:
            free, device = shutil.disk_usage(directory).free, directory.stat().st_dev
        except OSError:
            continue
        if free < checks.FULL_BYTES:
            by_device.setdefault(device, FullDisk(str(directory), free))
    return list(by_device.values())
