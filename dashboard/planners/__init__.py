"""Pages of planners: one package each; its module `pages` has their addresses and links."""
