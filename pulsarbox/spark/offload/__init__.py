"""Offloading of sealed ledgers to Parquet with a manifest: a topic's history outside its broker.

``layout`` defines paths, ``manifest`` records the offloaded ledgers, ``ledgers`` selects the next ones, ``writing``
creates a file, ``verifying`` checks it, ``merging`` replaces small files, and ``offloading`` runs all this for some
topics. ``table_offload`` writes the ledgers to an Iceberg table instead.
"""
