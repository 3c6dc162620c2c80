#!/usr/bin/env python3
"""Writes settings from the environment into configuration files, as the script of this name in Apache Pulsar's image.

apply-config-from-env.py [--prefix PULSAR_PREFIX_] FILE...
"""

import sys

from pulsarbox.cli.process.apply_environment import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
