"""Faults by rule, for tests of applications: what goes wrong, with which command, how often."""
