"""The demonstrations: recorded days, replayed over and over into clusters of their own.

`sf`: taxis of San Francisco; every 1 km map tile is a stream of position reports, every trip a
query over the tiles that it crosses, from its start to its end. `web`: requests to a web server.
"""
