#!/usr/bin/env python3
"""python_asks.py [ENGINE] [ROUNDS]: round trips from Python, one in flight, every reply checked.

Rows are interleaved: each of ROUNDS rounds (default 11) times every row once. The request has 64 floats to add to 64, as
for a small model's input; the reply has 64. The first float changes from call to call. Each call is timed alone, and
checked after it; the call alone, and the views alone, bring no reply to check.
"""

import sys
import time

import gyre
import numpy

ADD = "gyre::actors::VectorAdd"
COUNT = 64
CALLS = 500  # of a row in a round


def rows(client):
    a, b = numpy.arange(COUNT, dtype="f4"), numpy.full(COUNT, 2, "f4")
    ask = client.prepare(ADD, 1, "VectorAddRequest", a=COUNT, b=COUNT)
    ask.request.b[:] = b
    request = ask.request

    def by_dict():
        reply = client.ask(ADD, 1, "VectorAddRequest", {"a": a, "b": b})
        return reply["result"]

    def prepared():
        request.a[:] = a
        return ask().result

    def prepared_call_alone():
        ask()

    def send_and_wait():
        request.a[:] = a
        ask.send()
        return ask.wait().result

    def views_alone():  # what a call of `prepared` costs beside the round trip
        request.a[:] = a
        ask.reply.result  # noqa: B018

    return a, b, {
        "ask with a dict": by_dict, "prepared ask": prepared, "prepared ask, call alone": prepared_call_alone,
        "prepared ask, send and wait": send_and_wait, "request set and reply read, alone": views_alone}  # fmt: skip


def time_row(call, a, b):
    """Nanoseconds of each call."""
    samples = []
    for i in range(CALLS):
        a[0] = i
        begin = time.perf_counter_ns()
        result = call()
        samples.append(time.perf_counter_ns() - begin)
        if result is not None and not numpy.array_equal(result, a + b):
            raise SystemExit(f"a wrong reply to call {i}: {result}")
    return samples


def main():
    engine = sys.argv[1] if len(sys.argv) > 1 else "auto"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    with gyre.launch(engine=engine, wait="spin") as runtime:
        a, b, measured = rows(runtime.client())
        for call in measured.values():
            time_row(call, a, b)  # the first calls make views and caches
        times = {name: [] for name in measured}
        for _ in range(rounds):
            for name, call in measured.items():
                times[name] += time_row(call, a, b)
        from gyre._prepared import Ask

        print(f"{runtime.info()['device_name']}, by {Ask.__module__}, {rounds} rounds of {CALLS} calls")
        for name, of_row in times.items():
            of_row.sort()
            p50, p99, p999 = (of_row[int(len(of_row) * share)] / 1000 for share in (0.5, 0.99, 0.999))
            print(f"{name:36} p50 {p50:8.2f}  p99 {p99:8.2f}  p99.9 {p999:8.2f} µs")


if __name__ == "__main__":
    main()
