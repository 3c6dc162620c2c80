"""The screens that show messages: the browser of a topic, one message with its values, and two compared.

May import what other screens may; the documents that they draw are built in `tui.viewer`.
"""
