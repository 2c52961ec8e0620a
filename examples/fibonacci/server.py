"""The Fibonacci service with a pool of WORKERS threads."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import start_http_server

import fibonacci_pb2 as pb
import fibonacci_pb2_grpc
import settings
from service import Refused, Service
from telemetry import ServerMetrics

# Calls that run or wait for a thread; the next one is RESOURCE_EXHAUSTED.
MOST_CALLS = 1_000
NAMES = (pb.DESCRIPTOR.services_by_name["FibonacciService"].full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
# A second server on the same address must fail, not share it.
OPTIONS = [("grpc.so_reuseport", 0)]


class Servicer(fibonacci_pb2_grpc.FibonacciServiceServicer):
    def __init__(self, service, metrics):
        self._service = service
        self._metrics = metrics

    def Increment(self, request, context):
        return self._answer("Increment", self._service.increment, request, context)

    def Fibonacci(self, request, context):
        return self._answer("Fibonacci", self._service.fibonacci, request, context)

    def _answer(self, method, answer, request, context):
        try:
            with self._metrics.call(method):
                return answer(request)
        except Refused as refused:
            context.abort(refused.code, str(refused))


def main():
    told = settings.Server()
    server = grpc.server(
        ThreadPoolExecutor(max_workers=told.workers), options=OPTIONS,
        maximum_concurrent_rpcs=max(MOST_CALLS, told.workers),
    )
    metrics = ServerMetrics(told.name, told.mode)
    fibonacci_pb2_grpc.add_FibonacciServiceServicer_to_server(Servicer(Service(told.name), metrics), server)
    checks = health.HealthServicer()
    for name in ("", NAMES[0]):
        checks.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(NAMES, server)
    listen(server, told)

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    print(f"{told.name} serves {told.address} with {told.workers} threads", flush=True)
    stop.wait()
    checks.enter_graceful_shutdown()
    server.stop(grace=told.grace).wait()


def listen(server, told):
    """Binds both ports, or ends with a line that says which one is taken."""
    try:
        server.add_insecure_port(told.address)
    except RuntimeError:
        settings.refuse(f"cannot listen on {told.address}: is it in use? PORT chooses another one")
    try:
        if told.metrics_port > 0:
            start_http_server(told.metrics_port, addr=told.host)
    except OSError as error:
        settings.refuse(f"cannot show metrics on port {told.metrics_port}: {error.strerror}; METRICS_PORT chooses another one")


if __name__ == "__main__":
    main()
