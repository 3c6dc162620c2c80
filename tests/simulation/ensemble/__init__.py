"""Histories of an ensemble of directories that lie, lag, fill, vanish and return with an old state.

With ``--replicas``, one of them is on another machine: its connection ends at any time, answers are lost, and commits
arrive late or twice. An engine is driven directly, one operation after the other. The model says which batches must
survive, and every start, read and audit is compared with it.
"""
