"""Commands that are one operation of the API each: a declaration is all of such a command."""
