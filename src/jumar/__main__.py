"""``python -m jumar``: the command line where its script is not on the path."""

from jumar.cli.main import main

if __name__ == "__main__":
    main()
