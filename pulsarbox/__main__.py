"""``python -m pulsarbox``: the same as the ``pulsarbox`` command."""

from pulsarbox.cli.main import main

if __name__ == "__main__":
    main()
