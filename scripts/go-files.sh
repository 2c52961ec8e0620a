#!/usr/bin/env bash
# Prints every Go file of the tree, each ended by a zero byte. Hidden folders
# (tools, dependencies, git) and installed Node packages are not part of it.
set -euo pipefail
cd "$(dirname "$0")/.."
find . \( -path './.*' -o -name node_modules \) -prune -o -name '*.go' -type f -print0
