#!/bin/sh
# Writes src/gen, which is committed: what connect.ts serves. Needs protoc of Debian
# (protobuf-compiler) and `npm ci`, which brings the plugin.
set -eu
cd "$(dirname "$0")"
health=node_modules/grpc-health-check/proto reflection=node_modules/@grpc/reflection/build/proto
protoc --plugin=protoc-gen-es=node_modules/.bin/protoc-gen-es --es_out=src/gen \
  --es_opt=target=ts,import_extension=js -I proto -I $health -I $reflection \
  example/v1/example.proto health/v1/health.proto grpc/reflection/v1/reflection.proto
