"""The state of tasks: pages, watermarks, state transfer and conversion to wider columns."""
