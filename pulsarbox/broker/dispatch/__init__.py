"""Dispatchers: which entry goes to which consumer next."""
