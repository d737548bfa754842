#!/usr/bin/env python3
"""python_asks.py [ENGINE] [ROUNDS]: round trips from Python, one in flight, every reply checked.

Rows are interleaved: each of ROUNDS rounds (default 11) times every row once. The request has 64 floats to add to 64, as
for a small model's input; the reply has 64. Prints each row's median and least time for a call.
"""

import statistics
import sys
import time

import gyre
import numpy

ADD = "gyre::actors::VectorAdd"
COUNT = 64
CALLS = 500  # of a row in a round


def rows(client):
    a, b = numpy.arange(COUNT, dtype="f4"), numpy.full(COUNT, 2, "f4")
    expected = a + b
    ask = client.prepare(ADD, 1, "VectorAddRequest", a=COUNT, b=COUNT)
    ask.request.b[:] = b
    request, checked = ask.request, numpy.array_equal

    def by_dict():
        reply = client.ask(ADD, 1, "VectorAddRequest", {"a": a, "b": b})
        return reply["result"]

    def prepared():
        request.a[:] = a
        return ask().result

    def prepared_call_alone():
        ask()
        return None

    def send_and_wait():
        request.a[:] = a
        ask.send()
        return ask.wait().result

    def views_alone():  # what a call of `prepared` costs beside the round trip
        request.a[:] = a
        return ask.reply.result

    found = {"ask with a dict": by_dict, "prepared ask": prepared, "prepared ask, call alone": prepared_call_alone,
             "prepared ask, send and wait": send_and_wait, "request set and reply read, alone": views_alone}
    return {name: (call, lambda result: result is None or checked(result, expected)) for name, call in found.items()}


def time_row(call, is_right):
    begin = time.perf_counter()
    for _ in range(CALLS):
        result = call()
    elapsed = time.perf_counter() - begin
    if not is_right(result):
        raise SystemExit(f"a wrong reply: {result}")
    return elapsed / CALLS * 1e6


def main():
    engine = sys.argv[1] if len(sys.argv) > 1 else "auto"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    with gyre.launch(engine=engine, wait="spin") as runtime:
        measured = rows(runtime.client())
        for call, is_right in measured.values():
            time_row(call, is_right)  # the first calls make views and caches
        times = {name: [] for name in measured}
        for _ in range(rounds):
            for name, (call, is_right) in measured.items():
                times[name].append(time_row(call, is_right))
        from gyre._prepared import Ask

        print(f"{runtime.info()['device_name']}, by {Ask.__module__}, {rounds} rounds of {CALLS} calls")
        for name, of_row in times.items():
            median = statistics.median(of_row)
            print(f"{name:36} {median:8.2f} µs median {min(of_row):8.2f} µs least {1e6 / median:10.0f} /s")


if __name__ == "__main__":
    main()
