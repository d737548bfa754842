"""A request that is built once and sent many times, its fields and its reply's used in place. prepared.py [ENGINE]"""

import sys

import gyre
import numpy

with gyre.launch(engine=sys.argv[1] if len(sys.argv) > 1 else "auto") as runtime:
    ask = runtime.client().prepare("gyre::actors::VectorAdd", 1, "VectorAddRequest", a=64, b=64)
    ask.request.b[:] = 1
    for step in range(3):
        ask.request.a[:] = numpy.arange(64) * step
        reply = ask()
        print(reply.processed, "sums, the last is", reply.result[-1])
