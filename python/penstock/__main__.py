"""`python -m penstock`: the command, for where it is on no PATH."""

import sys


def program() -> int:
    """The command. What it needs is loaded where Ctrl-C is answered already."""
    try:
        from penstock.cli.main import program as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("penstock: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(program())
