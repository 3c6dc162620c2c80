"""Dead letters: when the broker gives up on a message, what the dead letter contains, and where it goes.

May import subscriptions, topics and policies. Must not replay dead letters: that is `broker.replay`.
"""
