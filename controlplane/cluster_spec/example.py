"""An example of a cluster description, from which people start their own."""

from typing import Final

EXAMPLE: Final = """\
weir: 1
cluster: {slug: orders, name: Orders}
nodes:
- {index: 0, name: node 0, capacity: 1000}
- {index: 1, name: node 1, capacity: 1000}
streams:
- name: purchases
  declared_rate: 50
  schema:
    columns:
    - {name: at, type: timestamp(ms), nullable: false}
    - {name: shop, type: string, nullable: false}
    - {name: amount, type: 'decimal(12, 2)'}
    event_time: at
queries:
- name: purchases-per-shop
  streams: [purchases]
  text: {aggregates: {purchases: count(*), turnover: sum(amount)}, key: [shop], window_s: 60}
placement:
  purchases-per-shop: 0
"""
