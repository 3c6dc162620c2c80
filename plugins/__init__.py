"""Plugins: routing, hashing and compression."""
