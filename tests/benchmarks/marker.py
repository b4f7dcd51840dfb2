"""Answers a cell with a mark: appends its seed to a file after a moment, and writes a row."""

import json
import os
import sys
import time


def main() -> None:
    cell = json.loads(sys.stdin.readline())
    time.sleep(0.01)
    handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{cell['seed']}\n".encode())
    os.close(handle)
    row = {"outcome": "ok", "status": "unknown", "objective": None, "bound": None, "seconds": 0.01}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
