#!/bin/sh
# Writes the generated code that is committed: Go, Python and Ruby (Node reads
# the .proto files when it starts). Run it after a change of a .proto file.
#
# Needs, in these versions, so that a second run changes nothing:
#   pip install grpcio-tools==1.85.1          into .deps/python; brings protoc 35.1
#   apt-get install protobuf-compiler-grpc    grpc_ruby_plugin 1.51
# The two Go plugins are pinned in tools/go.mod.
set -eu
cd "$(dirname "$0")/.."
make .tools/protoc-gen-go .tools/protoc-gen-go-grpc

protoc() { PATH="$PWD/.tools:$PATH" .deps/python/bin/python -m grpc_tools.protoc -I proto "$@"; }

module=github.com/cabrank/cabrank
protoc --go_out=. --go_opt=module=$module --go-grpc_out=. --go-grpc_opt=module=$module \
  cabrank/demo/v1/greeter.proto cabrank/example/v1/work.proto cabrank/lab/v1/worker.proto \
  cabrank/push/v1/push.proto

for name in example/v1/work push/v1/push; do
  mkdir -p "examples/ruby/lib/cabrank/${name%/*}"
  protoc --descriptor_set_out=/dev/stdout "cabrank/$name.proto" |
    .deps/python/bin/python proto/ruby_messages.py >"examples/ruby/lib/cabrank/${name}_pb.rb"
  protoc --grpc_out=examples/ruby/lib \
    --plugin=protoc-gen-grpc="$(command -v grpc_ruby_plugin)" \
    "cabrank/$name.proto"

  protoc --python_out=examples/python --grpc_python_out=examples/python \
    "cabrank/$name.proto"
done

# The Fibonacci example is a folder of its own, which the lab unpacks.
fibonacci=examples/fibonacci
.deps/python/bin/python -m grpc_tools.protoc -I $fibonacci --python_out=$fibonacci \
  --grpc_python_out=$fibonacci fibonacci.proto
