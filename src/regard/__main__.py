"""`python -m regard` is the command `regard`; torchrun starts it this way."""

from regard.cli import main

if __name__ == "__main__":
    main()
