"""Cpu counted by prometheus_client in multiprocess mode: this process serves calls, and
another one of the same worker counts, too. PROMETHEUS_MULTIPROC_DIR is their folder.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess, start_http_server

sys.path.insert(0, "examples/python")
from cabrank.example.v1 import work_pb2 as pb  # noqa: E402
from cabrank.example.v1 import work_pb2_grpc  # noqa: E402

CALLS = Counter("work_calls_total", "Calls, by method.", ["method"])
SECONDS = Histogram("work_seconds", "How long calls take.", buckets=(0.01, 0.1, 1))
PROCESSES = Gauge("work_processes", "1 for each process.")
TICKS = Counter("work_ticks_total", "What the other process counts.")


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Work(work_pb2_grpc.WorkServicer):
    """Counts its calls."""

    def Cpu(self, request, context):
        CALLS.labels("cpu").inc()
        SECONDS.observe(0.05)
        return pb.CpuReply(value=fib(min(request.n, 20)), worker=os.environ["CABRANK_WORKER"])


def tick():
    PROCESSES.set(1)
    while os.getppid() != 1:
        TICKS.inc()
        time.sleep(0.01)


def main():
    PROCESSES.set(1)
    helper = subprocess.Popen([sys.executable, __file__, "tick"])
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    start_http_server(int(os.environ["PROMETHEUS_EXPORTER_PORT"]), "127.0.0.1", registry)
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=[("grpc.so_reuseport", 0)])
    work_pb2_grpc.add_WorkServicer_to_server(Work(), server)
    server.add_insecure_port(os.environ["CABRANK_ADDR"])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server.start()
    stop.wait()
    server.stop(grace=5).wait()
    helper.kill()
    helper.wait()


if sys.argv[1:] == ["tick"]:
    tick()
else:
    main()
