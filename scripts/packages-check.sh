#!/usr/bin/env bash
# Makes all packages again, from a clone in another folder and with an empty build cache,
# and compares every byte with dist/. What differs is named: it depends on more than the
# commit and Go. Modules are not fetched again: go.sum holds their sums.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "packages-check: $1" >&2
  exit 1
}

[ -f dist/SHA256SUMS ] || fail "there is no dist/, run 'make packages'"
[ -z "$(git status --porcelain)" ] || fail "commit your changes first: what is compared is the commit"

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
git clone --quiet . "$elsewhere/clone"
GOCACHE=$elsewhere/cache make -C "$elsewhere/clone" packages >"$elsewhere/log" 2>&1 || {
  cat "$elsewhere/log" >&2
  fail "the packages could not be made in the clone"
}

differ=0
for file in dist/* "$elsewhere"/clone/dist/*; do
  name=${file##*/}
  cmp -s "dist/$name" "$elsewhere/clone/dist/$name" || {
    case " ${seen:-} " in *" $name "*) ;; *) echo "packages-check: $name differs" >&2 ;; esac
    seen="${seen:-} $name"
    differ=1
  }
done
[ $differ = 0 ] || fail "the same commit has given other bytes"
echo "packages-check: $(wc -l <dist/SHA256SUMS | tr -d ' ') packages are the same, byte for byte"
