"""Shared parts of all commands: exit codes, output formats, progress, confirmation, time and position arguments.

May import `cli.connect`, client, protocol and the layers below. Must not import a command, the broker or the server.
"""
