"""Rates: of dispatch, of publishing, of subscribing. The step is in ``step``, who waits in ``limiter``."""
