"""Topics of Kafka that other teams own and Weir reads in place, as the records of a stream."""
