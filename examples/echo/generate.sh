#!/bin/sh
# Writes the generated code of echo.proto, which is committed: Go, Ruby, Python and that of
# connect-node. Needs what proto/generate.sh does, with grpcio-reflection, and `npm ci
# --prefix examples/nestjs`. Java and Rust generate theirs when they are built.
set -eu
cd "$(dirname "$0")/../.."
make .tools/protoc-gen-go .tools/protoc-gen-go-grpc

python=${PYTHON:-.deps/python/bin/python} echo=examples/echo module=github.com/cabrank/cabrank
reflection=examples/nestjs/node_modules/@grpc/reflection/build/proto
protoc() { PATH="$PWD/.tools:$PATH" "$python" -m grpc_tools.protoc "$@"; }

protoc -I $echo --python_out=$echo/python --grpc_python_out=$echo/python \
  --go_out=. --go_opt=module=$module --go-grpc_out=. --go-grpc_opt=module=$module \
  --es_out=$echo/node --es_opt=target=js --plugin=protoc-gen-es=examples/nestjs/node_modules/.bin/protoc-gen-es \
  --grpc_out=$echo/ruby --plugin=protoc-gen-grpc="$(command -v grpc_ruby_plugin)" echo.proto
protoc -I $echo --descriptor_set_out=/dev/stdout echo.proto |
  "$python" proto/ruby_messages.py >$echo/ruby/echo_pb.rb
protoc -I $reflection --descriptor_set_out=/dev/stdout grpc/reflection/v1/reflection.proto |
  "$python" proto/ruby_messages.py >$echo/ruby/reflection_pb.rb
