"""Every read that two places need, each as a function that returns rows or values."""
