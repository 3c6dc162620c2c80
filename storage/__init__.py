"""Managed ledgers, cursors, the journal, and the engine interface that the broker uses.

The modules at the root are pure. `lmdb` stores them on disk, `packing` reclaims disk space, `compression` encodes
entries, `inspection` reads a data directory without a broker, `backup` copies one. The root imports limits from
`packing` and codecs from `compression`; it must not import `lmdb`, `inspection` or `backup`, open files or start
threads.
"""
