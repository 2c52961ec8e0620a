"""The worker of examples/python that refuses calls which find no free thread.

Its Io asks a server at BACKEND, if there is one, and passes on what that says if
it fails. The first argument is the folder of the records; millis is the number of
the call.
"""

import os
import sys
import threading

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../examples/python"))
import worker  # noqa: E402

RECORDS = open(os.path.join(sys.argv[1], worker.WORKER), "a", buffering=1)  # noqa: SIM115
THREADS = int(os.environ.get("POOL_SIZE", "5"))
PLAIN = grpc.server
LOCK = threading.Lock()
BACKEND = None


def backend():
    global BACKEND
    with LOCK:
        if BACKEND is None:
            channel = grpc.insecure_channel(os.environ["BACKEND"])
            BACKEND = worker.work_pb2_grpc.WorkStub(channel)
    return BACKEND


def nested(self, request, context):
    RECORDS.write(f"{request.millis}\n")
    try:
        backend().Cpu(worker.pb.CpuRequest(n=15))
    except grpc.RpcError as failure:
        context.abort(failure.code(), failure.details())
    return worker.pb.IoReply(millis=request.millis, worker=worker.WORKER)


def bounded(pool, **options):
    return PLAIN(pool, maximum_concurrent_rpcs=THREADS, **options)


grpc.server = bounded
if "BACKEND" in os.environ:
    worker.Work.Io = nested
worker.main()
