"""This machine's telemetry through a box, workers and all of that being killed: what went in comes out.

Starts ``pulsarbox`` on a directory of its own and publishes readings of this machine (processor, memory, disks,
network, processes; the device is the key) to a partitioned topic with the official Python client. Three groups consume:

- ``ledger``: one consumer, Failover, keeps the books, and an archive of them;
- ``workers``: processes on a Shared subscription. Some readings nobody can process: they end on a dead letter topic.
  One worker fails now and then, is killed (SIGKILL), and another takes over;
- ``keys``: processes on a Key_Shared subscription, each device in order. One is killed here too.

The three plugins of ``examples/plugins`` are at work: by ``hash-tag`` all devices of a kind have one partition and one
of the workers by key; by ``weighted`` the workers get readings by their weights; and the box compresses with ``xz``
what of the archive stands in volumes that are full. What they did is told by the box.

Half way the box itself gets a SIGKILL and is started in place; all clients carry on by themselves. In the end the books
of all sides are compared, device by device.
"""
