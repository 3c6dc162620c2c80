"""The sizes of a data directory's engine, as the settings have them."""

from typing import Any

from pulsarbox.config import Settings


def sizes_of(settings: Settings) -> dict[str, Any]:
    """Return the arguments of the engine of a data directory."""
    return {
        "volume_size": settings.journalVolumeSizeMbytes << 20,
        "index_flush_entries": settings.journalIndexFlushEntries,
        "page_cache_bytes": settings.journalPageCacheMbytes << 20,
        "reserve_bytes": settings.journalReserveMbytes << 20,
        "pack_live_percent": settings.journalPackLivePercent,
        "pack_bytes_per_second": settings.journalPackMbytesPerSecond << 20,
    }
