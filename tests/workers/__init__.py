"""Distribution of the tests to worker processes."""
