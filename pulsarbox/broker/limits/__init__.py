"""Rate limits: dispatch, publish and subscribe rates, resource groups, and the limits of the whole box.

`token_bucket` computes allowances, `limiter` queues waiters, and `throttle_report` describes throttling. May import
policies. Must not read a clock: the time is an argument.
"""
