"""Topics: their registry, producers, ledgers, schemas, deduplication, loading, unloading and deletion.

`topic` builds a topic from its parts. A part takes what it uses and declares protocols for what it changes in the
topic; it must not import the topic. May import the storage interface and the other rooms of the broker. Must not import
the LMDB engine or anything that performs I/O: reads outside the tail cache go through `broker.read_queue`.
"""
