"""Backups of a data directory: created from a running, stopped or crashed box, verified, restored.

A backup directory holds any number of backups. File contents are stored once, under their SHA-256; a backup is a
manifest that lists them. The backup process reads the data directory like any other reader, without the help of the
box::

    BACKUPS                    JSON: {"format": 1}; makes a directory a backup directory
    LOCK                       held with flock by the process that adds or removes backups
    backups/NAME.json          the manifest of a complete backup
    backups/NAME.partial       the files stored so far by a running or interrupted backup, one JSON line per file
    files/AB/ABCDEF...         contents, named by their SHA-256
    incoming/                  files being written

This package opens files, locks and LMDB environments; it must not import ``server``.
"""
