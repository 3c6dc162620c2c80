"""Offloading of sealed ledgers to Parquet, one file each, with a manifest: a topic's history outside its broker.

``layout`` defines paths, ``manifest`` records the offloaded ledgers, ``ledgers`` selects the next ones, ``writing``
creates a file, ``verifying`` checks it, and ``offloading`` runs all this for some topics.
"""
