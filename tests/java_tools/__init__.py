"""Pulsar's own Java tools, unmodified, against a box: pulsar-admin, pulsar-client, pulsar-perf and pulsar-shell.

``make java-tools`` runs the command lines of ``scenarios`` and compares exit codes and output with those of Apache
Pulsar: recorded ones (``recorded.json``), or those of a broker that is named with B.
"""
