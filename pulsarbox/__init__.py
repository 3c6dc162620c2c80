"""Apache Pulsar in a box: one process and one data directory that speak the Pulsar protocols."""

__version__ = "0.1.0"
