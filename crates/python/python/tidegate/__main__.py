"""`python -m tidegate`: the command line."""

from ._program import main

if __name__ == "__main__":
    main()
