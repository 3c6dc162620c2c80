"""Widgets of the screens: tables, columns, graphs, bars, number formats.

May import textual and rich. Must not send requests to a box.
"""
