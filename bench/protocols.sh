#!/usr/bin/env bash
# The benchmark suite of nestjs-buf-connect on this machine: examples/nestjs by Connect,
# gRPC-Web and gRPC, each alone, measured by the lab (scenario protocols).
#
#   bench/protocols.sh [quick|connect|standard]
#
#   SCENARIO        all, connect, grpc-connect or grpc-standard: some of the ways
#   MESSAGE_COUNT   messages of each server stream, 5
#   CONNECT_PORT    of the server on connect-node, 50051
#   GRPC_PORT       of the server on grpc-js, 50052
#   SKIP_BUILD      1: examples/nestjs is built
#   RESULTS         folder of what comes out, bench/out/protocols-TIME
#
# Writes unary-TIME.json, server-stream-TIME.json, summary-TIME.txt, what the servers said in
# logs/ and the lab's report.
# Exit status: 1 if more than 1 % of the calls fail, or are slower than p95 100 ms or p99
# 200 ms (streams 500 and 1000), of those that are not behind Cabrank.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "protocols.sh: $1" >&2
  exit 2
}

LAB=${LAB:-bin/cabrank-lab}
[ -x "$LAB" ] || fail "there is no $LAB: make build lab"
[ -d examples/nestjs/node_modules ] || fail "examples/nestjs has no packages: npm ci --prefix examples/nestjs"
[ "${SKIP_BUILD:-0}" = 1 ] || npm run --silent build --prefix examples/nestjs

mode=${1:-all} flags=(--set "messages=${MESSAGE_COUNT:-5}" --set "connect_port=${CONNECT_PORT:-50051}" --set "grpc_port=${GRPC_PORT:-50052}") arms=()
case $mode in
all) ;;
quick) flags+=(--quick) ;;
connect) arms=("connect gRPC" "connect gRPC-Web" "connect Connect") ;;
standard) arms=("standard gRPC") ;;
*) fail "$mode is not quick, connect or standard" ;;
esac
case ${SCENARIO:-all} in
all) ;;
connect) arms=("connect Connect") ;;
grpc-connect) arms=("connect gRPC") ;;
grpc-standard) arms=("standard gRPC") ;;
*) fail "SCENARIO is $SCENARIO: want all, connect, grpc-connect or grpc-standard" ;;
esac
for arm in "${arms[@]}"; do flags+=(--arm "$arm"); done

now=$(date -u +%Y-%m-%dT%H-%M-%S)
out=${RESULTS:-bench/out/protocols-$now}
"$LAB" run protocols "${flags[@]}" --out "$out"
node bench/protocols.js "$out" "$now" "$mode" "${MESSAGE_COUNT:-5}"
