#!/usr/bin/env bash
# Runs every fuzz target of the tree, one after the other, for the time $1
# each. A finding is written by Go into the package's testdata/fuzz folder:
# commit it, it is a regression test from then on. Each input that covers more
# is made smaller in at most 100 runs: by default that takes a minute of $1.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: scripts/fuzz.sh DURATION}

count=0
for module in . lab; do
  for dir in $(scripts/test-packages.sh '^func Fuzz' "${module#.}"); do
    while read -r target; do
      echo "fuzz $module $dir $target ($time)"
      if ! output=$(cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x "$dir" </dev/null 2>&1); then
        echo "$output"
        exit 1
      fi
      tail -n 1 <<<"$output"
      count=$((count + 1))
    done < <(cd "$module" && grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2)
  done
done
echo "fuzz: $count targets, $time each, nothing found"
