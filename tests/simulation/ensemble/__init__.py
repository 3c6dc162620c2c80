"""Histories of an ensemble of directories that lie, lag, fill, vanish and return with an old state.

An engine is driven directly, one operation after the other. The model says which batches must survive, and every
start, read and audit is compared with it.
"""
