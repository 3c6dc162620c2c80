"""Policies over HTTP."""
