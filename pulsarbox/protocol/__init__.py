"""The binary protocol of Apache Pulsar 4.2: conversion between bytes and values, without sockets or clocks.

Suggested reading order: ``frames`` splits the stream, ``commands`` parses a frame's command, ``replies`` encodes the
broker's commands, ``metadata`` and ``batch`` parse a producer's payload. ``send_decoder``, ``send_receipt`` and
``message_frame`` are fast paths for the three commands that run a hundred thousand times a second.
"""
