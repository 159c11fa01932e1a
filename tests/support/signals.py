"""Child processes that hear Ctrl-C even where the tests run in the background of a shell."""

from typing import Final

# Begins a command: undoes an inherited ignoring of SIGINT.
HEARING: Final = ("env", "--default-signal=INT")
