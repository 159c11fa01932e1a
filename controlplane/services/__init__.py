"""One use case a module: read, decide, save, announce; every one takes the actor first."""
