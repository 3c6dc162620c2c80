"""Command line. `main` lists every command and imports its module only when the command runs.

`commands`, `declaration`, `messages`, `pipeline`, `process`, `data` and `plugins` hold commands; `connect`, `envelope`
and `common` hold their shared parts. Must not import textual, pyspark or the server before a command needs them.
"""
