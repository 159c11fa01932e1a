#!/bin/sh
# Python for Spark's processes on this machine, which are forked from a loaded one (forked.py).
exec "$WEIR_PYTHON" -I -S "${0%/*}/forked.py" "$@"
