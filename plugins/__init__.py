"""Plugins: routing, hashing and compression.

``contracts`` says what a plugin is; the built-in ones are in ``hashing``, ``routing`` and ``compression`` and keep the
same contracts; ``registry`` knows them all and finds the others.
"""
