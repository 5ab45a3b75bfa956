"""``python -m toolturn``, the command line."""

from toolturn.cli import main

main()
