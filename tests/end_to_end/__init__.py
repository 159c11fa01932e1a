"""The whole of Weir as a newcomer starts it, driven through its pages and its API."""
