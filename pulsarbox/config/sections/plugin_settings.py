"""The settings of plugins: where they are, and what goes by which of them."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class PluginSettings:
    """Those of ``Settings`` that stand in the table [plugins]."""

    keySharedHashing: str = setting(
        "murmur3",
        "Own setting. The hash by which key-shared subscriptions give keys to consumers: murmur3 as Pulsar does, or "
        "the name of a hashing plugin. Consumers that choose ranges themselves have to know it. A subscription's "
        "property of this name goes before it.",
        table="plugins",
        minimum=1,
    )
    keySharedHashingMissing: str = setting(
        "refuse",
        "Own setting. What the box does where a hash cannot be had that key-shared subscriptions go by: refuse to "
        "start, or let them go by murmur3, which gives keys to other consumers.",
        table="plugins",
        choices=("refuse", "murmur3"),
    )
    keySharedSelector: str = setting(
        "",
        "Own setting. Which consumer of a key-shared subscription has which keys: consistentHashing or hashRange, as "
        "Pulsar has them, or the name of a routing plugin; empty: as subscriptionKeySharedUseConsistentHashing says, "
        "and where there is none of that name. A subscription's property of this name goes before it.",
        table="plugins",
    )
    routing: str = setting(
        "round-robin",
        "Own setting. How the box chooses a partition, where it does and not a client: of what is produced by HTTP, "
        "and of dead letters. round-robin (in turn, by the key where there is one), single, key, consistent, "
        "least-backlog, property, or the name of a routing plugin; where there is none of that name they go in turn. "
        "A topic's property of this name goes before it.",
        table="plugins",
        minimum=1,
    )
    routingHashing: str = setting(
        "java",
        "Own setting. The hash of keys for that: java (as Java clients), boost (as C++ and Python clients), murmur3, "
        "java-cpp, xxhash, crc32c, or the name of a hashing plugin. A topic's property of this name goes before it.",
        table="plugins",
        minimum=1,
    )
    routingOptions: str = setting(
        "",
        "Own setting. What the router is told, such as property=region, with commas between. A topic's property of "
        "this name goes before it.",
        table="plugins",
    )
    pluginsDirectory: str = setting(
        "",
        "Own setting. Directory with files that are plugins, each with a class Plugin; empty for none. Plugins that "
        "are installed as packages are found without it.",
        table="plugins",
    )
    pluginsDisabled: str = setting(
        "",
        "Own setting. Plugins that are not to be used, such as routing:zone,hashing:fnv: kind and name, with commas "
        "between. A hash that subscriptions go by is used as long as they do. `pulsarbox plugins disable NAME` sets "
        "it.",
        table="plugins",
        dynamic=True,
    )
