#!/usr/bin/env python
"""Django's command line for Weir."""

import os
import sys

from django.core.management import execute_from_command_line

from controlplane.installation.env import keep_files_private

if __name__ == "__main__":
    keep_files_private()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    execute_from_command_line(sys.argv)
