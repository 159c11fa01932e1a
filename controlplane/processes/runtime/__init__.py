"""Start, supervision and stop of Weir on one machine (`make run`), without Django."""
