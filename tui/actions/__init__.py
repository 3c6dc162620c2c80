"""Actions of the dashboard: the table of actions, the operations behind them, dialogs and advice.

May import widgets and client. Must not import a screen.
"""
