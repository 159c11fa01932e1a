"""Previews of queries: the newest records of their streams, evaluated by the engine in a child."""
