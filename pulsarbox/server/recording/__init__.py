"""Periodic sampling and recording of a running box: rates, events, the history, and slow commits.

May read the broker and write the event and history files. Must not run on the message path.
"""
