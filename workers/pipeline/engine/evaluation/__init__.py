"""The records of a micro-batch, and the evaluation of expressions over them."""
