"""Pages of all clusters: the fleet by risk, alerts, and the creation of clusters."""
