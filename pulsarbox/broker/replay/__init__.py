"""Replay jobs: grouping dead letters by cause, and replaying or dropping them in resumable steps.

May import topics, subscriptions and the dead letter room. Must not hold progress outside the job's row: a restart
resumes from the row alone.
"""
