#!/usr/bin/env bash
# Runs h2spec against the engine and through the relay, and prints how many
# cases passed in each run. The last line is the count of the last run; if one
# of them fails, it is the output of the tests instead.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! out=$(go test -tags soak -count=1 -timeout 20m -v -run '^TestH2Spec' ./test/real/protocol); then
  echo "$out"
  exit 1
fi
echo "$out" | awk '/^=== RUN / {print $3} /^ *[0-9]+ tests, [0-9]+ passed$/ {sub(/^ */, ""); print; n++} END {exit !n}'
