"""A benchmark that leaves a mark: appends its name to a file, then works for a moment."""

import os
import sys
import time


def main() -> None:
    path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    time.sleep(seconds)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{name}\n".encode())
    os.close(handle)


if __name__ == "__main__":
    main()
