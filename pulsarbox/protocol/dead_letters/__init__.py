"""Vocabulary of dead letters: property names, failure fingerprints, and the names in message filters.

The broker's jobs, the command line and Spark all use it, so one filter selects the same messages everywhere. Must not
import the broker, a client or an event loop.
"""
