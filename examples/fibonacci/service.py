"""What the service answers, without a word about threads or asyncio."""

import threading

import grpc

import fibonacci_pb2 as pb

# Python turns whole numbers of at most 4,300 digits into text; this one has 4,180.
MOST_N = 20_000
MOST_NAMES = 1_000
LONGEST_NAME = 100


class Refused(Exception):
    """A call that ends with a code that is not OK."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


class Service:
    def __init__(self, name):
        self.name = name
        self._counts = {}  # by the name in the request, at most MOST_NAMES
        self._lock = threading.Lock()

    def fibonacci(self, request):
        if request.n > MOST_N:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"n must be from 0 to {MOST_N}, not {request.n}")
        return pb.FibonacciResponse(value=str(fibonacci(request.n)), server_name=self.name)

    def increment(self, request):
        if len(request.name) > LONGEST_NAME:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"a name has at most {LONGEST_NAME} characters")
        with self._lock:
            if request.name not in self._counts and len(self._counts) >= MOST_NAMES:
                raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_NAMES} names are counted already")
            number = (self._counts.get(request.name, 0) + 1) % 2**32
            self._counts[request.name] = number
        return pb.IncrementResponse(number=number, server_name=self.name)
