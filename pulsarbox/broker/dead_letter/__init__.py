"""Dead letters: redelivery limits, the contents of dead letters and their topics.

May import subscriptions, topics and policies. Must not replay dead letters: that is `broker.replay`.
"""
