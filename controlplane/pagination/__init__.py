"""Pagination of lists: by page number and by cursor."""
