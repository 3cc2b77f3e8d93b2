"""`python -m flowserver`: the command line, wherever the script `flowserver` is not on the path."""

from flowserver.cli.main import app

if __name__ == "__main__":
    app(prog_name="flowserver")
