"""Start, supervision and stop of Weir on one machine (`weir serve`), without Django."""
