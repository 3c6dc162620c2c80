"""Avro in time linear in its input: definitions, schema resolution, and values in binary and in JSON.

Clients supply both definitions and values, so every function here is bounded in steps, memory and depth. The reference
library is not: it compares the records of a union with each other repeatedly, copies the definition into the error of
each level, and reads a value of zero bytes in exponential time.

Source: https://avro.apache.org/docs/1.12.0/specification/.
"""
