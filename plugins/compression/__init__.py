"""The built-in codecs: LZ4, zlib, zstd, Snappy and none, as Pulsar's protocol names them.

May import the codec contract and C-backed libraries. Must not exceed the size limit passed to `decompress`.
"""
