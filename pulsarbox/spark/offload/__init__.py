"""Sealed ledgers as Parquet, a file each, and a manifest of them: what a topic had, kept outside of its broker.

``layout`` says where files stand, ``manifest`` what is known of them, ``ledgers`` which may become one; ``writing``
makes a file, ``verifying`` looks at it again, ``offloading`` does all that for some topics.
"""
