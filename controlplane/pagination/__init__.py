"""Pagination of lists: by page number for people, by cursor for programs."""
