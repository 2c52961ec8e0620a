"""``python -m cabrank ARGS`` becomes the program: the same process, nothing of Python stays."""

import os
import sys
from typing import NoReturn

import cabrank


def main() -> None:
    try:
        program = cabrank.path()
    except FileNotFoundError as error:
        fail(str(error))
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        fail(f"{program}: {error.strerror}")


def fail(reason: str) -> NoReturn:
    print(f"cabrank: {reason}", file=sys.stderr)
    sys.exit(2)  # nothing was started


if __name__ == "__main__":
    main()
