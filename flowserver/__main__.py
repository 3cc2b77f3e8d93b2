"""`python -m flowserver`: the command line, wherever the script `flowserver` is not on the path."""

from flowserver.cli.program import main

if __name__ == "__main__":
    main()
