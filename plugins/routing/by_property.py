"""Routing by a message property that is not the key, such as a tenant or a region."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class ByProperty:
    """Option ``property``: its name. Messages without it are routed by key, or round robin."""

    api: ClassVar = 1
    name: ClassVar = "property"
    example_options: ClassVar = {"property": "region"}

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32
        name = producing.options.get("property")
        if not name:
            raise ValueError("missing option: expected property=NAME")

        def choose(message: Unrouted, partitions: int) -> int:
            value = message.properties.get(name)
            key = message.key if value is None else value.encode(errors="surrogatepass")
            return (message.batch if key is None else hash32(key)) % partitions

        return choose
