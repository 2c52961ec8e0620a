"""What both servers share: where they listen, and what an answer takes."""

import os
import time

from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

import echo_pb2

ADDRESS = "127.0.0.1:" + os.environ.get("PORT", "50051")
# A second server on the same address must fail, not share it.
OPTIONS = [("grpc.so_reuseport", 0)]
# Seconds that calls have to end in when a server is told to end.
GRACE = 30
NAMES = [
    echo_pb2.DESCRIPTOR.services_by_name["Echo"].full_name,
    health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
    reflection.SERVICE_NAME,
]


def use(millis):
    """Uses CPU. The clock is that of the thread: on a busy machine it takes longer."""
    up_to = time.thread_time() + min(millis, 1000) / 1000
    while time.thread_time() < up_to:
        pass


def answer(request, number):
    use(request.cpu_ms)
    return echo_pb2.EchoReply(text=request.text, number=number)


def numbers(request):
    return range(1, min(request.count, 10_000) + 1)
