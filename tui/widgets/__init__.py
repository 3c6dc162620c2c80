"""What screens are drawn from: tables, columns, graphs, bars, number formats.

May import textual and rich. Must not talk to a box.
"""
