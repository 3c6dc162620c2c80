"""Pipelines that ship with pulsarbox: rollup, triage, replay, backfill and export.

May import the pipelines room, source and sink. Must not be imported by them.
"""
