"""Pictures of every view of the dashboard in every theme and size, on one page: ``make gallery``.

The views are those of simulated boxes: busy, empty, unreachable, in the past, with long names. ``views`` lists them,
``boxes`` has their data, ``drawing`` draws them, and ``page`` arranges the files.
"""
