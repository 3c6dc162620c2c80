"""Uploads and downloads of packages without HTTP."""

from typing import Any

from pulsarbox.broker.packages.package_name import PackageName
from pulsarbox.broker.packages.package_upload import PackageUpload
from pulsarbox.clock import Now
from tests.unit.broker.core_driver import CoreDriver

NAME = PackageName.of("function", "public", "default", "a", "1")
PIECES = [bytes([number]) * 1000 for number in range(5)]


class Storing:
    """The upload of one package, piece by piece."""

    def __init__(self, box: CoreDriver, name: PackageName = NAME) -> None:
        self.box = box
        self.left = list(PIECES)
        self.upload: PackageUpload = box.broker.packages.begin_upload(name)
        self.error: Exception | None = None
        self.step(None, box.now)

    def step(self, error: Exception | None, now: Now) -> None:
        """Store the next piece, or make the package visible."""
        self.error = error
        if error is not None:
            self.upload.cancel(now)
        elif self.left:
            self.upload.write([self.left.pop(0)], self.step, now)
        else:
            self.upload.finish({"description": "d"}, now)


def store(box: CoreDriver, name: PackageName = NAME) -> None:
    """Store a package."""
    storing = Storing(box, name)
    box.turn()
    assert storing.upload.over
    assert storing.error is None


def content(box: CoreDriver, name: PackageName = NAME) -> bytes:
    """Return the content of a package."""
    reader, found, answers = box.broker.packages.reader(name), b"", list[Any]()
    while True:
        reader.read(lambda data, error, now: answers.append((data, error)), box.now)
        box.turn()
        data, error = answers.pop()
        assert error is None
        if not data:
            return found
        found += data
