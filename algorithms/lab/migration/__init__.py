"""Migration in the Lab: plans for later migrations, transfers, experiments (paper 004)."""
