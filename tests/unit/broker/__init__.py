"""Tests of the broker core, command by command."""
