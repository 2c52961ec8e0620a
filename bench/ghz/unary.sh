#!/usr/bin/env bash
# SayHello by ghz: callers in steps of 10, 50 and 100, for each of the two NestJS servers
# alone, or for a server that runs. Closed loop: see docs/lab-load.md.
#
#   bench/ghz/unary.sh [quick|connect|standard]
#   SERVER=localhost:8080 bench/ghz/unary.sh
#
# Variables: bench/servers.sh.
source "$(dirname "$0")/../servers.sh"

GHZ=${GHZ:-.tools/ghz}
[ -x "$GHZ" ] || fail "there is no ghz: scripts/install-deps.sh ghz"
mode=${1:-all} seconds=10
[ "$mode" != quick ] || seconds=1

# The callers grow while one run goes on.
steps() {
  "$GHZ" --insecure --import-paths "$PROTO" --proto example/v1/example.proto \
    --call example.v1.ExampleService.SayHello --data '{"name":"User-{{.RequestNumber}}"}' \
    --concurrency 100 --connections 10 --concurrency-schedule step --concurrency-start 10 \
    --concurrency-end 100 --concurrency-step 30 --concurrency-step-duration "${seconds}s" \
    --duration "$((6 * seconds))s" --duration-stop wait --name "$1" \
    --format json --output "$RESULTS/ghz-unary-$1-$now.json" "$2"
  node bench/ghz/table.js "$RESULTS/ghz-unary-$1-$now.json"
}

each "$mode" steps
