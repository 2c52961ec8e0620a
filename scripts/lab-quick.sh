#!/usr/bin/env bash
# Runs one short round of every scenario of the lab, of some with those arms alone that its
# question is about: 7 minutes. Results are in bench/out/quick. It shows that all of it runs;
# what it measures decides nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A arms=(
  [connections]="single|max-age"
  [doors]="gRPC-Web 4x25|Connect 50x1|Connect 50x1, envoy"
  [disturbance]="round-robin|cabrank"
  [languages]="ruby|ruby x2|python|python x2|node|node x2|go|go x1"
  [policies]="round-robin|cabrank"
  [protocols]="standard gRPC|connect gRPC|connect Connect"
  [relay]="ruby-bare|ruby-cabrank"
  [strategies]="connections, 5 threads|cabrank, 5 threads"
  [simulated]="cabrank|simulated"
  [tls]="clear|cabrank|haproxy before"
)

# Scenarios in Python run what they find on PATH.
export PATH=$PWD/.deps/fibonacci/bin:$PATH
rm -rf bench/out/quick
for name in $(bin/cabrank-lab list | awk 'NR > 1 {print $1}'); do
  IFS='|' read -ra some <<<"${arms[$name]-}"
  echo "lab-quick: $name"
  bin/cabrank-lab run "$name" --quick --rounds 1 "${some[@]/#/--arm=}" --out "bench/out/quick/$name"
done
