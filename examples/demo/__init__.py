"""Demo: telemetry of this machine passes through a box, while workers and the box are killed, without loss.

Starts ``pulsarbox`` on a temporary directory and publishes readings of this machine with the official Python client.
Readings of CPU, memory, disks, network and processes are published to a partitioned topic, with the device as the key.
Three groups consume:

- ``ledger``: one Failover consumer keeps the books, and an archive of them;
- ``workers``: processes on a Shared subscription. Some readings cannot be processed and end on a dead letter topic. One
  worker fails now and then, is killed (SIGKILL), and another takes over;
- ``keys``: processes on a Key_Shared subscription, each device in order. One of them is killed too.

The demo uses the three plugins of ``examples/plugins``. ``hash-tag`` routes all devices of a kind to one partition and
one Key_Shared worker. ``weighted`` distributes readings to the workers by weight. The box compresses sealed volumes of
the archive with ``xz``. The box reports what they did.

Halfway through, the box itself is killed (SIGKILL) and restarted in place; all clients reconnect automatically. At the
end the books of all sides are compared, device by device.
"""
