#!/usr/bin/env bash
# Prints the folders of all test files that have a line matching the extended
# regular expression $1, as ./dir: of the module in the folder $2, or of the root's.
# Finding none is an error: a check that runs nothing must not look like one that
# passed.
set -euo pipefail
cd "$(dirname "$0")/.."
module=./${2:-}
others='^\./(lab|packaging|tools)/'
found=$(scripts/go-files.sh | { grep -zE '_test\.go$' || true; } |
  xargs -0 -r grep -lE "$1" | xargs -r -n1 dirname | sort -u |
  if [ -z "${2:-}" ]; then grep -vE "$others"; else sed -n "s,^$module/,./,p"; fi) || true
if [ -z "$found" ]; then
  echo "scripts/test-packages.sh: no test file matches '$1'" >&2
  echo ./no-such-tests
  exit 1
fi
echo "$found"
