"""The demonstration `web`: eight hours of a web server's log, replayed over and over.

Every directory of the server is a stream of requests; its queries have text keys, one of them
skewed, and windows from a minute to a day.
"""
