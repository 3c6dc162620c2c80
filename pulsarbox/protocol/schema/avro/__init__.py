"""Avro in time linear in its input: definitions, schema resolution, and values in binary and in JSON.

Clients supply both the definitions and the values, so every function here is bounded in steps, memory and depth. The
reference library is not: it compares records in a union with one another again and again, copies a definition into the
error of each level, and reads a value of no bytes in exponential time.

Source: https://avro.apache.org/docs/1.12.0/specification/.
"""
