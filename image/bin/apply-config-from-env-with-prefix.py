#!/usr/bin/env python3
"""Writes variables with a prefix into configuration files, as the script of this name in Apache Pulsar's image.

apply-config-from-env-with-prefix.py PREFIX FILE...
"""

import sys

from pulsarbox.cli.process.apply_environment import main

if __name__ == "__main__":
    sys.exit(main(["--prefix", *sys.argv[1:]]))
