"""The Pulsar wire protocol: bytes to values and values to bytes, and nothing else."""
