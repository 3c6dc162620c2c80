"""The built-in codecs: LZ4, zlib, zstd, Snappy and none, as Pulsar's protocol names them.

``entry_body`` opens the bodies of entries with them. May import the codec contract, `protocol` and C-backed libraries.
Must not exceed the size limit passed to `decompress`.
"""
