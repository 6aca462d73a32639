"""`python -m justright` is the command line."""

from justright.cli import main

main()
