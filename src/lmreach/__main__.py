"""``python -m lmreach`` is ``lmreach``."""

from lmreach.cli import main

main()
