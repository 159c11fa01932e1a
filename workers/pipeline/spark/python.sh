#!/bin/sh
# Python for Spark's processes on this machine, with the package of PySpark instead of its zip file:
# each process would compile the modules of the file, which takes a second of processor time.
path=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */python/lib/*.zip) ;;
        *) path=$path:$entry ;;
    esac
done
PYTHONPATH=${path#:}
export PYTHONPATH
unset IFS
exec "$WEIR_PYTHON" "$@"
