"""Rate limits: dispatch, publish and subscribe rates, resource groups and the limits of the whole box.

`token_bucket` computes, `limiter` orders whoever waits, and `throttle_report` describes what is held. May import
policies. Must not read a clock: the time is an argument.
"""
