"""The command line: `main` names every command and imports its file only when the command runs.

`commands`, `messages`, `pipeline`, `process`, `data` and `plugins` hold commands; `connect`, `envelope` and `common`
hold what they share. Must not import textual, pyspark or the server before a command needs them.
"""
