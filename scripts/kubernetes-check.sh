#!/usr/bin/env bash
# Has a real kube-apiserver, with nothing behind it, take the manifests of deploy/ and examples/:
# a dry run on the server, which checks and defaults every field. The first run builds it and
# takes some 5 minutes. It needs kubectl and Debian's etcd-server, as root to install that.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.36.2
PATH=$PATH:/usr/sbin:/sbin

fail() { echo "kubernetes-check: $1" >&2; exit 1; }

command -v kubectl >/dev/null || fail "no kubectl; install it and run this again"
if ! command -v etcd >/dev/null; then
  [ "$(id -u)" = 0 ] || fail "run this line, then this again: sudo apt-get install -y --no-install-recommends etcd-server"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends etcd-server >/dev/null
fi
[ -x .deps/helm/helm ] || scripts/install-deps.sh workers

# Of a module whose parts are replaced by folders of its repository only the releases of these
# parts can be had from elsewhere.
build() {
  local at=.deps/kube-apiserver
  mkdir -p "$at" && rm -f "$at"/go.*
  printf 'module check\n\ngo 1.26\n' >"$at/go.mod"
  printf '//go:build tools\n\npackage check\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' >"$at/tools.go"
  (
    cd "$at"
    export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
    of=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
    go mod edit -require "k8s.io/kubernetes@v$version"
    for part in $(sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$of"); do
      go mod edit -replace "$part=$part@v0.${version#*.}"
    done
    echo "kubernetes-check: building kube-apiserver $version"
    go build -ldflags='-s -w' -o "kube-apiserver-$version" k8s.io/kubernetes/cmd/kube-apiserver
  )
}
apiserver=$PWD/.deps/kube-apiserver/kube-apiserver-$version
[ -x "$apiserver" ] || build

folder=$(mktemp -d)
started=()
end() {
  # What is stored is thrown away, and a kube-apiserver without its etcd does not end.
  [ ${#started[@]} = 0 ] || kill -KILL "${started[@]}" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf "$folder"
}
trap end EXIT
read -r etcd peer port < <(python3 -c 'import socket
s = [socket.socket() for _ in range(3)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')

etcd --data-dir "$folder/etcd" --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  --initial-cluster "default=http://127.0.0.1:$peer" >"$folder/etcd.log" 2>&1 &
started+=($!)
openssl genrsa -out "$folder/accounts.key" 2048 2>/dev/null
echo 'check,admin,admin,system:masters' >"$folder/tokens"
"$apiserver" --etcd-servers "http://127.0.0.1:$etcd" --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$folder/certs" \
  --token-auth-file "$folder/tokens" --authorization-mode AlwaysAllow --disable-admission-plugins ServiceAccount \
  --service-cluster-ip-range 10.96.0.0/24 --service-account-issuer https://check --service-account-key-file "$folder/accounts.key" \
  --service-account-signing-key-file "$folder/accounts.key" >"$folder/apiserver.log" 2>&1 &
started+=($!)
ask() { kubectl --server "https://127.0.0.1:$port" --insecure-skip-tls-verify --token check --cache-dir "$folder/cache" "$@"; }
for _ in $(seq 120); do
  ask get --raw /readyz >/dev/null 2>&1 && ask get namespace default >/dev/null 2>&1 && break
  kill -0 "${started[@]}" 2>/dev/null || fail "it has ended: $(tail -3 "$folder/apiserver.log")"
  sleep 0.5
done

ask create namespace grpc >/dev/null # of the examples
for file in deploy/kubernetes/*.yaml examples/fibonacci/kubernetes/*.yaml; do
  case $file in *monitoring.yaml | *adapter-rules.yaml) continue ;; esac # of an operator, and values of a chart
  echo "$file"
  ask apply --dry-run=server --validate=strict -f "$file" | sed 's/^/  /'
done
for mode in pod sidecar relay; do
  echo "deploy/helm/cabrank, mode: $mode, all that can be switched on"
  .deps/helm/helm template shop deploy/helm/cabrank --set "mode=$mode" --set autoscaling.enabled=true \
    --set monitoring.dashboard=true | ask apply --dry-run=server --validate=strict -f - | sed 's/^/  /'
done
