"""What all list pages share: parameters of the address, filter bar, saved views, files."""

from dashboard.lists.page import EXPLAIN, list_filters, page_number, require_known
