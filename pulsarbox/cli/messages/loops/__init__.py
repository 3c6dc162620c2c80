"""Loops of the commands that read messages: where they start, how they read and acknowledge, and when they stop.

May import the client, and the options, formats and filters of the message commands. Must not define commands.
"""
