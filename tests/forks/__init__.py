"""Commands and boxes of this project as forks of a process that has already loaded the modules.

A process that imports the modules itself needs several times the CPU time of most commands. A fork has its own input,
output, environment, directory and exit. Tests of the imports themselves use ordinary processes
(``tests/unit/test_imports.py``, ``tests/e2e/process/test_process.py``).
"""

from tests.forks.client import Process, attached, box, boxes, children, run, start, text

__all__ = ["Process", "attached", "box", "boxes", "children", "run", "start", "text"]
