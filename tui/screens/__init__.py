"""The screens of the dashboard, one module each; `tui.app.SCREENS` lists the main ones.

May import widgets, actions and the feed. Must not send a request outside the feed.
"""
