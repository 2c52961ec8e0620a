"""Calls each method of Work once and prints one JSON line per case.

usage: python3 client.py [HOST:PORT]
"""

import json
import queue
import sys

import grpc
from grpc_status import rpc_status

from cabrank.example.v1 import work_pb2 as pb
from cabrank.example.v1 import work_pb2_grpc


def show(name, got):
    print(json.dumps({"case": name, "got": got}), flush=True)


def code_of(error):
    return error.code().value[0]


def chat(stub, texts):
    """Every message but the first waits for the answer to the one before."""
    answers = queue.Queue()

    def messages():
        for i, text in enumerate(texts):
            if i > 0:
                answers.get()
            yield pb.ChatMessage(text=text)

    got = []
    for message in stub.Chat(messages()):
        got.append(message.text)
        answers.put(message.text)
    return got


def failure(stub):
    try:
        stub.Fail(pb.FailRequest(code=9, message="sold out: café ☕", reason="SOLD_OUT"))
    except grpc.RpcError as error:
        detail = pb.FailDetail()
        rpc_status.from_call(error).details[0].Unpack(detail)
        return {"code": code_of(error), "message": error.details(), "reason": detail.reason}


def metadata(stub):
    sent = [("x-head", "one"), ("x-head", "two"), ("x-tail-bin", b"\x00\x01\xfe\xff")]
    request = pb.MetaRequest(headers=["x-head"], trailers=["x-tail-bin"])
    _, call = stub.Meta.with_call(request, metadata=sent)
    return {
        "header": ", ".join(v for k, v in call.initial_metadata() if k == "x-head"),
        "trailer": dict(call.trailing_metadata())["x-tail-bin"].hex(),
    }


def deadline(stub):
    try:
        stub.Io(pb.IoRequest(millis=1000), timeout=0.1)
    except grpc.RpcError as error:
        return code_of(error)


def cancel(stub):
    """Leaves in the middle of a stream of 20 s."""
    call = stub.Count(pb.CountRequest(to=1000, pause_millis=20))
    try:
        for _ in call:
            call.cancel()
    except grpc.RpcError as error:
        return code_of(error)


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "localhost:8080"
    with grpc.insecure_channel(target) as channel:
        stub = work_pb2_grpc.WorkStub(channel)
        show("cpu", stub.Cpu(pb.CpuRequest(n=20)).value)
        show("io", stub.Io(pb.IoRequest(millis=10)).millis)
        show("count", [number.value for number in stub.Count(pb.CountRequest(to=5))])
        show("count nothing", [number.value for number in stub.Count(pb.CountRequest(to=0))])
        show("sum", stub.Sum(pb.Number(value=value) for value in range(1, 11)).value)
        show("sum nothing", stub.Sum(iter(())).value)
        show("chat", chat(stub, ["one", "zwei", "三"]))
        show("fail", failure(stub))
        show("meta", metadata(stub))
        show("deadline", deadline(stub))
        show("cancel", cancel(stub))


if __name__ == "__main__":
    main()
