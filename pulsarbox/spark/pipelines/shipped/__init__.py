"""Pipelines that ship with pulsarbox: rollup, triage, backfill and export.

May import the other rooms of spark, client, storage, and the broker's replay. Must not be imported by them.
"""
