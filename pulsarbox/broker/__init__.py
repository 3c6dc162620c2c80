"""The broker: pure state machines; time is an argument, ports are synchronous."""
