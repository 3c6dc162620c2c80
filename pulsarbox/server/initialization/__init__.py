"""The declared state of a box at its start: files, tokens, and the Admin API without a connection.

Commands that apply declarations share the files and tokens. May import declaration, broker, `server.http` and config.
Must not be imported by a start without declarations, which it would slow down.
"""
