"""python -m mqctl."""

from mqctl.cli.main import main

main()
