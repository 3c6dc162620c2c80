"""Recordings of the dashboard for the documentation. Run by ``make pictures``, not by the tests."""
