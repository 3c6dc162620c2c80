"""Storage: managed ledgers, cursors, the journal, and the engine interface that the broker sees.

The files here are pure; `lmdb` keeps them on disk, `packing` gives space back, `compression` encodes, `inspection`
reads a directory without a broker, `backup` copies one. The root takes limits from `packing` and codecs from
`compression`; it must not import `lmdb`, `inspection` or `backup`, open files or start threads.
"""
