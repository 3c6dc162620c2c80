"""Settings of the [plugins] table: location and selection of plugins."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class PluginSettings:
    """The [plugins] part of ``Settings``."""

    keySharedHashing: str = setting(
        "murmur3",
        "Own setting. Hash that assigns keys to the consumers of Key_Shared subscriptions: murmur3, as in Pulsar, or "
        "the name of a hashing plugin. Consumers with sticky hash ranges must use the same hash. A subscription "
        "property with this name takes precedence.",
        table="plugins",
        minimum=1,
    )
    keySharedHashingMissing: str = setting(
        "refuse",
        "Own setting. Behaviour if the hash of existing Key_Shared subscriptions is not available: refuse to start, or "
        "fall back on murmur3, which assigns keys to other consumers.",
        table="plugins",
        choices=("refuse", "murmur3"),
    )
    keySharedSelector: str = setting(
        "",
        "Own setting. Assignment of keys to the consumers of Key_Shared subscriptions: consistentHashing or "
        "hashRange, as in Pulsar, or the name of a routing plugin. Empty, or if the plugin does not exist: "
        "subscriptionKeySharedUseConsistentHashing decides. A subscription property with this name takes precedence.",
        table="plugins",
    )
    routing: str = setting(
        "round-robin",
        "Own setting. Partition routing for messages produced over HTTP and for dead letters, which the box routes "
        "itself. round-robin (in turn, or by key if there is one), single, key, consistent, least-backlog, property, "
        "or the name of a routing plugin. If the plugin does not exist, round-robin is used. A topic property with "
        "this name takes precedence.",
        table="plugins",
        minimum=1,
    )
    routingHashing: str = setting(
        "java",
        "Own setting. Hash of keys for routing: java (as in Java clients), boost (as in C++ and Python clients), "
        "murmur3, java-cpp, xxhash, crc32c, or the name of a hashing plugin. A topic property with this name takes "
        "precedence.",
        table="plugins",
        minimum=1,
    )
    routingOptions: str = setting(
        "",
        "Own setting. Options of the router, comma-separated, such as property=region. A topic property with this "
        "name takes precedence.",
        table="plugins",
    )
    pluginsDirectory: str = setting(
        "",
        "Own setting. Directory of plugin files, each with a class Plugin; empty for none. Plugins that are installed "
        "as packages are found without it.",
        table="plugins",
    )
    pluginsDisabled: str = setting(
        "",
        "Own setting. Disabled plugins, as kind and name, comma-separated, such as routing:zone,hashing:fnv. A hash "
        "stays in use as long as a subscription depends on it. `pulsarbox plugins disable NAME` changes this setting.",
        table="plugins",
        dynamic=True,
    )
