"""Statistics: rates, samples, totals and the reason why a subscription does not dispatch.

May read every part of the broker. Must not change any of it.
"""
