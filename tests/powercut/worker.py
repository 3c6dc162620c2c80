"""A process that builds and opens images, so that a bus error or abort in LMDB is reported by its parent.

``python -m tests.powercut.worker PLAN FIRST STEP``: opens every STEP-th image of the plan, starting with FIRST. Prints
a JSON line before and after each image.
"""

import json
import random
import shutil
import sys
from pathlib import Path
from traceback import format_exc
from typing import Any

from tests.powercut.check import Violation
from tests.powercut.disk import write_tree
from tests.powercut.images import Image
from tests.powercut.recording import level_of, moments


def work(plan: dict[str, Any], first: int, step: int) -> None:
    """Open images and report each verdict to the parent."""
    log = Path(plan["log"])
    numbers = range(first, len(plan["images"]), step)
    images = [Image(*plan["images"][number]) for number in numbers]
    # The parent removes this folder, as a worker may be killed.
    folder = Path(plan["scratch"]) / f"image-{first % step}"
    for number, image, (disk, story) in zip(numbers, images, moments(log, plan["mutant"], images), strict=True):
        print(json.dumps({"image": number}), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_tree(disk.image(image.kind, random.Random(image.dice)), folder)
        verdict = None
        try:
            level_of(log).check(folder, story, random.Random(image.dice))
        except Violation as violation:
            verdict = str(violation)
        except Exception:
            verdict = format_exc()
        print(json.dumps({"image": number, "verdict": verdict}), flush=True)


if __name__ == "__main__":
    work(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]), int(sys.argv[3]))
