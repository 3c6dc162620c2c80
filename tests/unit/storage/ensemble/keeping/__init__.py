"""Tests of audit, repair, scrub and operations."""
