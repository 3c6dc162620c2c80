"""The screens of the dashboard, one file each; `tui.app.SCREENS` lists those that have a key.

May import widgets, actions and the feed. Must not make a request outside the feed.
"""
