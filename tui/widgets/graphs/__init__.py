"""Graphs of braille dots, what they begin with, and maps of areas.

May import ``tui.widgets``; screens and other widgets import it.
"""
