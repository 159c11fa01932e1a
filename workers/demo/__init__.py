"""The demonstration: one day of San Francisco taxis, replayed over and over.

Every 1 km map tile is a stream of position reports, every taxi trip a query over the tiles it
crosses that arrives when the trip starts and departs when it ends.
"""
