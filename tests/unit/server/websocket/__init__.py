"""The WebSocket API."""
