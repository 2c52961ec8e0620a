# The two NestJS servers of examples/nestjs, one at a time, for the scripts beside this file,
# which source it.
#
#   CONNECT_PORT   of the server on connect-node, 50051
#   GRPC_PORT      of the server on grpc-js, 50052
#   SKIP_BUILD     1: examples/nestjs is built
#   SERVER         HOST:PORT of a server that runs already, such as a cabrank: it is called alone
#   RESULTS        folder of what comes out, bench/out/nestjs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CONNECT_PORT=${CONNECT_PORT:-50051} GRPC_PORT=${GRPC_PORT:-50052}
RESULTS=${RESULTS:-bench/out/nestjs}
PROTO=examples/nestjs/proto
export CONNECT_PORT GRPC_PORT
now=$(date -u +%Y-%m-%dT%H-%M-%S)
server=

fail() {
  echo "${0##*/}: $1" >&2
  exit 1
}

stop() {
  [ -n "$server" ] || return 0
  kill "$server" && wait "$server" 2>/dev/null || true
  server=
}
trap stop EXIT

build() {
  mkdir -p "$RESULTS"
  [ -n "${SERVER:-}" ] || [ "${SKIP_BUILD:-0}" = 1 ] && return
  [ -d examples/nestjs/node_modules ] || fail "examples/nestjs has no packages: npm ci --prefix examples/nestjs"
  npm run --silent build --prefix examples/nestjs
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# each MODE COMMAND runs a command for each server that a mode means, with its name and its
# address.
each() {
  build
  if [ -n "${SERVER:-}" ]; then
    "$2" server "$SERVER"
    return
  fi
  case $1 in
  all | quick) alone connect "$2" && alone standard "$2" ;;
  connect | standard) alone "$1" "$2" ;;
  *) fail "$1 is not quick, connect or standard" ;;
  esac
}

# alone runs a command while one server, and no other, runs.
alone() {
  local kind=$1 port log tries=0
  if [ "$kind" = connect ]; then port=$CONNECT_PORT log=connect-server.log; else port=$GRPC_PORT log=grpc-server.log; fi
  ! answers "$port" || fail "something listens at port $port: end it, or set CONNECT_PORT or GRPC_PORT"
  PORT=$port node "examples/nestjs/dist/$kind.js" >"$RESULTS/$log" 2>&1 &
  server=$!
  until answers "$port"; do
    kill -0 "$server" 2>/dev/null || fail "the server has ended: $(tail -n 1 "$RESULTS/$log")"
    [ $((tries += 1)) -le 300 ] || fail "nothing listens at port $port after 30 s: $RESULTS/$log"
    sleep 0.1
  done
  "$2" "$kind" "localhost:$port"
  stop
}
