"""Faulty plugins, each in a file with a class ``Plugin``."""

from typing import Final

HASH: Final = """
class Plugin:
    kind = "hashing"
    name = "it"
    api = 1
    def hash32(self, key):
        {}
"""

CODEC: Final = """
import zlib
class Plugin:
    kind = "compression"
    name = "it"
    api = 1
    wire_id = None
    rest_tag = b"test"
    def open(self): return self
    def trained(self, dictionary): return None
    def train(self, samples, size): return None
    def compress(self, data): return {compress}
    def decompress(self, data, size): return {decompress}
"""

MISSING: Final = "import a_module_that_nobody_has\n" + HASH.format("return 1")
ENDS: Final = "raise SystemExit(3)\n" + HASH.format("return 1")
OLD: Final = HASH.format("return 1").replace("api = 1", "api = 0")
RANGE: Final = HASH.format("return len(key) - 1")
ENDLESS: Final = HASH.format("while True: pass")
MEMORY: Final = "kept = []\n" + HASH.format("kept.append(bytes(1 << 28)); return self.hash32(key)")
BOMB: Final = CODEC.format(compress="zlib.compress(data)", decompress="zlib.decompress(data)")
LIES: Final = CODEC.format(compress="data[: len(data) // 2]", decompress="data + bytes(size - len(data))")
THREADS: Final = "import time, zlib\n" + HASH.format(
    "self.key = key; key[-1:] == b'7' and time.sleep(0); return zlib.crc32(self.key) & 0x7FFFFFFF"
)
CHANGES: Final = "count = [0]\n" + HASH.format("count[0] += 1; return hash(key + b'%d' % count[0]) & 0x7FFFFFFF")
