"""`python -m penstock`: the command, for where it is on no PATH."""

import sys

from penstock.cli import program

sys.exit(program())
