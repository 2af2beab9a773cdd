"""``python -m lookout`` is ``lookout``."""

from lookout.cli import main

main(prog_name="lookout")
