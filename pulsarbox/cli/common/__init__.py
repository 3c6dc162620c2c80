"""Parts that all commands share: exit codes, output formats, progress, confirmation, time and position arguments.

May import `cli.connect`, client, protocol and the modules under it. Must not import a command, the broker or the
server.
"""
