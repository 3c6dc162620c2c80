"""Topics: their registry, producers, ledgers, schemas, deduplication, loading, unloading and deletion.

May import the storage interface and the other rooms of the broker. Must not import the LMDB engine or anything that
performs I/O: reads outside the tail cache go through `broker.read_queue`.
"""
