"""An embedded box: in a thread of the calling program or in a child process, for tests and tools.

Nothing is imported here, so ``from pulsarbox import PulsarBox`` pays for imports only on use, and the pytest plugin
only when a test requests a box.
"""
