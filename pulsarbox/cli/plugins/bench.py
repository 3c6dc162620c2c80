"""Benchmark of a plugin against a built-in one of its kind."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from pulsarbox.plugins.conformance.examples import noise, records
from pulsarbox.plugins.conformance.routing import Divided, Standing, opened
from pulsarbox.plugins.contracts import Compression, Unrouted
from pulsarbox.plugins.guard import Guard, PluginFailed
from pulsarbox.plugins.registry import PluginEntry, PluginError, get, load

_LOOPS: Final = 1000
_ROUND_NANOS: Final = 10_000_000
_BESIDE: Final = {"hashing": "murmur3", "routing": "round-robin", "compression": "zstd"}

Row = dict[str, Any]


def measured(found: PluginEntry, seconds: float) -> list[Row]:
    """Return rows ``{what, plugin, value, unit}`` of the plugin, guarded as in production, and of the built-in one.

    Raises PluginError if the plugin cannot be loaded or fails.
    """
    plugin, beside = load(found), get(found.kind, _BESIDE[found.kind])
    rows = {"hashing": _hashing, "routing": _routing, "compression": _compression}[found.kind]
    try:
        made = [*rows(plugin, found.name, seconds)]
        if found.kind != "routing" or hasattr(plugin, "open"):
            made += rows(beside, _BESIDE[found.kind], seconds)
    except PluginFailed as error:
        raise PluginError(str(error)) from None
    except Exception as error:
        raise PluginError(f"failed: {type(error).__name__}: {error}") from None
    return made


def _fails(*_: Any) -> Any:
    raise PluginFailed("failed; `pulsarbox plugins test` reports why")


def _guard(kind: str, name: str) -> Guard:
    return Guard(kind, name, time.perf_counter_ns, lambda trouble: None)


def _hashing(plugin: Any, name: str, seconds: float) -> Iterator[Row]:
    hash32 = _guard("hashing", name).hashing(plugin.hash32, _fails)
    for size in (16, 200):
        key = noise(size)
        yield _nanos(f"hash of {size} bytes", name, seconds, hash32, key)


def _routing(plugin: Any, name: str, seconds: float) -> Iterator[Row]:
    if hasattr(plugin, "divide"):
        divided = Divided(plugin)
        divided.come(0)
        divided.come(1)
        yield _nanos(
            "consumer of a slot", name, seconds, _guard("routing", name).decided, divided.selector.select, 4711
        )
        return
    if not hasattr(plugin, "open"):
        choice = _guard("routing", name).consumers(plugin.choose, _fails)
        ready = [Standing(f"c{i}", 1000, i) for i in range(10)]
        yield _nanos("one of 10 consumers", name, seconds, choice, ready)
        return
    choose = _guard("routing", name).partitions(opened(plugin), _fails)
    for what, key in (("with a key", b"order-4711"), ("without a key", None)):
        message = Unrouted(key, {"region": "north"}, 100, 0, 0)
        yield _nanos(f"partition {what}", name, seconds, choose, message, 16)


def _compression(plugin: Compression, name: str, seconds: float) -> Iterator[Row]:
    codec = plugin.open()
    for what, body in (("a record", records(1)[0]), ("64 KiB of records", b"".join(records(600))[: 64 << 10])):
        packed = codec.compress(body)
        yield {"what": f"{what}: ratio", "plugin": name, "value": len(body) / len(packed), "unit": "times"}
        for done, nanos in (
            ("compressed", _nanos("", name, seconds, codec.compress, body)["value"]),
            ("decompressed", _nanos("", name, seconds, codec.decompress, packed, len(body))["value"]),
        ):
            yield {"what": f"{what}: {done}", "plugin": name, "value": len(body) * 1e3 / nanos, "unit": "MB/s"}


def _nanos(what: str, name: str, seconds: float, work: Callable[..., Any], *arguments: Any) -> Row:
    """Measure the best of rounds of up to 1000 calls (about 10 ms each) within ``seconds``; at least one round."""
    begin = time.perf_counter_ns()
    work(*arguments)
    once = max(1, time.perf_counter_ns() - begin)
    loops = max(1, min(_LOOPS, _ROUND_NANOS // once))
    best, end = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        begin = time.perf_counter_ns()
        for _ in range(loops):
            work(*arguments)
        best = min(best, (time.perf_counter_ns() - begin) / loops)
    return {"what": what, "plugin": name, "value": best, "unit": "ns"}
