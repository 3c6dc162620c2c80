"""The built-in hashes: those of Pulsar's clients, and two more."""
