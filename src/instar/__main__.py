"""`python -m instar` is the `instar` command."""

from instar.cli import main

main()
