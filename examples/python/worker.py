"""A worker on grpcio: CABRANK_ADDR is its address, CABRANK_SLOTS its threads.

POOL_SIZE, if there is one, gives it another number of threads than slots.
"""

import itertools
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.rpc import status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cabrank.example.v1 import work_pb2 as pb
from cabrank.example.v1 import work_pb2_grpc

WORKER = os.environ.get("CABRANK_WORKER", "python")
CODES = {code.value[0]: code for code in grpc.StatusCode}


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Work(work_pb2_grpc.WorkServicer):
    """Shows each kind of call once."""

    def __init__(self):
        self.executions = itertools.count(1)

    def Cpu(self, request, context):
        return pb.CpuReply(value=fib(min(request.n, 40)), worker=WORKER)

    def Io(self, request, context):
        millis = min(request.millis, 60_000)
        time.sleep(millis / 1000)
        return pb.IoReply(millis=millis, worker=WORKER)

    def Count(self, request, context):
        for value in range(1, request.to + 1):
            if value > 1:
                time.sleep(request.pause_millis / 1000)
            yield pb.Number(value=value)

    def Sum(self, numbers, context):
        return pb.Number(value=sum(number.value for number in numbers))

    def Chat(self, messages, context):
        for message in messages:
            yield pb.ChatMessage(text="re: " + message.text)

    def Fail(self, request, context):
        status = status_pb2.Status(code=request.code, message=request.message)
        status.details.add().Pack(pb.FailDetail(reason=request.reason))
        context.set_trailing_metadata((
            ("grpc-status-details-bin", status.SerializeToString()),
            ("x-executions", str(next(self.executions))),
        ))
        context.abort(CODES[request.code], request.message)

    def Meta(self, request, context):
        got = context.invocation_metadata()
        context.send_initial_metadata([(k, v) for k, v in got if k in request.headers])
        context.set_trailing_metadata([(k, v) for k, v in got if k in request.trailers])
        return pb.MetaReply()


def main():
    server = grpc.server(
        ThreadPoolExecutor(max_workers=int(os.environ.get("POOL_SIZE") or os.environ.get("CABRANK_SLOTS", "5"))),
        # A second worker on the same address must fail, not share it.
        options=[("grpc.so_reuseport", 0)],
    )
    work_pb2_grpc.add_WorkServicer_to_server(Work(), server)
    checks = health.HealthServicer()
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    server.add_insecure_port(os.environ.get("CABRANK_ADDR", "127.0.0.1:50051"))

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    stop.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
