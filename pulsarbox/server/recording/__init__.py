"""What is sampled and recorded while a box runs: rates, events, the history and slow commits.

May read the broker and write the event and history files. Must not run on the message path.
"""
