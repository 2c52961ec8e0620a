"""demo.Jobs on grpcio: a call computes fib(20) and sleeps for 30 ms, twice.

CABRANK_ADDR    address to listen on (127.0.0.1:50051)
CABRANK_SLOTS   threads (5)
CABRANK_THREADS calls that it takes (as many as threads)
JOBS_BACKLOG    calls that may wait for a thread (0: they are refused)
CABRANK_WORKER  name that answers carry in the trailer x-worker,
POD_NAME        behind this one
"""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
except ImportError as error:
    sys.exit(f"worker.py: {error}; run `python3 -m pip install grpcio grpcio-health-checking`")

try:
    from grpc_reflection.v1alpha import reflection
except ImportError:  # it is a package of its own, and callers can do without
    reflection = None


def declare():
    """The messages of jobs.proto, without generated code: that needs one version of protobuf."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="jobs.proto", package="demo", syntax="proto3")
    for name, fields in (
        ("GetJobReq", (("id", kind.TYPE_UINT64),)),
        ("GetJobResp", (("id", kind.TYPE_UINT64), ("name", kind.TYPE_STRING))),
    ):
        message = file.message_type.add(name=name)
        for number, (field, kind_of) in enumerate(fields, 1):
            message.field.add(name=field, number=number, type=kind_of, label=kind.LABEL_OPTIONAL)
    service = file.service.add(name="Jobs")
    service.method.add(name="GetJob", input_type=".demo.GetJobReq", output_type=".demo.GetJobResp")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = (pool.FindMessageTypeByName("demo." + name) for name in ("GetJobReq", "GetJobResp"))
    return map(message_factory.GetMessageClass, found)


GetJobReq, GetJobResp = declare()
WORKER = "/".join(filter(None, map(os.environ.get, ("POD_NAME", "CABRANK_WORKER"))))


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def get_job(request, context):
    for _ in range(2):
        fib(20)
        time.sleep(0.03)
    if WORKER:
        context.set_trailing_metadata((("x-worker", WORKER),))
    return GetJobResp(id=101, name="job 101")


def services(server):
    """Adds demo.Jobs, health, and reflection where there is the package for it."""
    handler = grpc.unary_unary_rpc_method_handler(
        get_job, request_deserializer=GetJobReq.FromString, response_serializer=GetJobResp.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("demo.Jobs", {"GetJob": handler}),))
    checks = health.HealthServicer()
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    if reflection:
        reflection.enable_server_reflection(("demo.Jobs", health.SERVICE_NAME, reflection.SERVICE_NAME), server)


def main():
    slots = int(os.environ.get("CABRANK_SLOTS", "5"))
    waiting = int(os.environ.get("JOBS_BACKLOG", "0"))
    server = grpc.server(
        ThreadPoolExecutor(max_workers=slots),
        # Without this number any number of calls would wait. A call counts for a moment
        # after its answer, so that Cabrank tells workers of more threads than slots.
        maximum_concurrent_rpcs=int(os.environ.get("CABRANK_THREADS", slots)) + waiting,
        # A second worker on the same address must fail, not share it.
        options=[("grpc.so_reuseport", 0)],
    )
    services(server)
    server.add_insecure_port(os.environ.get("CABRANK_ADDR", "127.0.0.1:50051"))

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    stop.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
