"""Backups of a data directory: taken in place from a running, stopped or dead box, verified, restored.

A backup directory holds any number of backups. Contents are stored once, under their SHA-256; a backup is a manifest
that names them. The process that makes a backup reads the data directory as any other reader does, so the box needs
no operation for it::

    BACKUPS                    JSON: {"format": 1}; makes a directory a backup directory
    LOCK                       held with flock by the process that adds or removes backups
    backups/NAME.json          the manifest of a complete backup
    backups/NAME.partial       the files stored so far by a backup that runs or was interrupted, one JSON line a file
    files/AB/ABCDEF...         contents, named by their SHA-256
    incoming/                  files that are being written

This room opens files, locks and LMDB environments; it imports nothing of ``server``.
"""
