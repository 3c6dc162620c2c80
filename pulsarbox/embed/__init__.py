"""A box inside another program: in a thread of it or in a child process, for tests and tools.

Nothing is imported here: ``from pulsarbox import PulsarBox`` pays when it is asked for, the pytest plugin when a test
asks for a box.
"""
