"""Future migrations, section 4: known sequences, and known probabilities."""
