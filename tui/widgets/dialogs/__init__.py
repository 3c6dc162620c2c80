"""Base of dialogs, their titles and keys, and lists of options.

May import ``tui.widgets``; the dialogs in ``tui.actions`` and ``tui.screens`` import it.
"""
