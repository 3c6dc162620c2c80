"""Tests of the pure core, command by command."""
