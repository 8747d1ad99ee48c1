#!/bin/sh
# The planted faults fit the sources as they are; ./dev faults plants them.
command -v python3 >/dev/null || { echo "left out: no python3 (python3-numpy)"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$(dirname "$0")/run.py" --stand
