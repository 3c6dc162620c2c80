"""Commands for declared state: apply, diff, export.

May import `cli.common`, `cli.connect`, declaration, client and, inside functions, `server.initialization`, which reads
the files and writes tokens. Must not import PyYAML before a command runs.
"""
