"""`python -m kafkalite` and the `kafkalite` command."""

import sys


def main() -> None:
    """Run the command line on the process's arguments, and exit."""
    # Imported here so that a `kafkalite` that is only looked at costs nothing.
    from kafkalite.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
