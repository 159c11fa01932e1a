"""Work of the relay and of the beat that concerns several subjects."""
