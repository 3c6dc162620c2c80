"""Tests of ensembles of data directories."""
