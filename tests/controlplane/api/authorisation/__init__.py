"""The authorisation matrix: who may call what, for every address of Weir."""
