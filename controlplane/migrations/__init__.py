"""Schema history of the control plane."""
