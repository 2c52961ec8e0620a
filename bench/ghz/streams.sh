#!/usr/bin/env bash
# ServerStream by ghz: 50 callers, 10,000 streams of 5 messages, for each of the two NestJS
# servers alone, or for a server that runs. ghz counts a stream as one call.
#
#   bench/ghz/streams.sh [quick|connect|standard]
#   CONCURRENCY=10 TOTAL_REQUESTS=1000 MESSAGE_COUNT=5 bench/ghz/streams.sh
#
# Variables: bench/servers.sh.
source "$(dirname "$0")/../servers.sh"

GHZ=${GHZ:-.tools/ghz}
[ -x "$GHZ" ] || fail "there is no ghz: scripts/install-deps.sh ghz"
mode=${1:-all}
if [ "$mode" = quick ]; then callers=10 streams=1000; else callers=50 streams=10000; fi
callers=${CONCURRENCY:-$callers} streams=${TOTAL_REQUESTS:-$streams} messages=${MESSAGE_COUNT:-5}

streams() {
  "$GHZ" --insecure --import-paths "$PROTO" --proto example/v1/example.proto \
    --call example.v1.ExampleService.ServerStream --data "{\"data\":\"benchmark\",\"count\":$messages}" \
    --concurrency "$callers" --total "$streams" --name "$1" \
    --format json --output "$RESULTS/ghz-streams-$1-$now.json" "$2"
  node bench/ghz/table.js "$RESULTS/ghz-streams-$1-$now.json" "$messages"
}

each "$mode" streams
