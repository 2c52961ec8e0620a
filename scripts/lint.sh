#!/usr/bin/env bash
# The checks of form, cheapest first. Each says what is wrong and what to do;
# the script ends at the first group that fails. $1 is the tags of a build, if any.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly tags=real,soak,${1:-}

fail() {
  echo "lint: $1" >&2
  exit 1
}

for script in scripts/*.sh .ci/run; do
  bash -n "$script" || fail "$script is not valid shell"
done

unformatted=$(scripts/go-files.sh | xargs -0 gofmt -s -l)
[ -z "$unformatted" ] || fail "not formatted, run 'make fmt': ${unformatted//$'\n'/ }"

go mod tidy -diff || fail "go.mod is not tidy, run 'go mod tidy'"
for module in tools packaging lab; do
  (cd $module && go mod tidy -diff) || fail "$module/go.mod is not tidy, run 'go mod tidy' in $module"
done

# golangci-lint brings go vet for Linux; this is the check that macOS compiles.
for module in . lab; do
  CGO_ENABLED=0 go run -trimpath ./test/macos "$tags" $module || fail "the tree does not compile for macOS"
done

.tools/golangci-lint run --allow-serial-runners --build-tags "$tags" ./... || fail "see the findings above; .golangci.yml says why a rule is off"
(cd lab && ../.tools/golangci-lint run --allow-serial-runners --build-tags "$tags" ./...) || fail "see the findings above, in lab"
(cd packaging && ../.tools/golangci-lint run --allow-serial-runners ./...) || fail "see the findings above, in packaging"
