"""Packages: files with the code of functions, sinks and sources, which a box stores and never runs.

Imports `persistence` and the registries of tenants; topics do not know packages.
"""
