"""Two NumPy arrays, added by an actor: on the GPU where there is one, else on CPU threads. vector_add.py [ENGINE]"""

import sys

import gyre
import numpy

with gyre.launch(engine=sys.argv[1] if len(sys.argv) > 1 else "auto") as runtime:
    client = runtime.client()

    # Small ones go in the message.
    reply = client.ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", {"a": [1, 2, 3], "b": [10, 20, 30]})
    print(reply["result"])

    # Large ones go in buffers, which messages name.
    a = numpy.arange(1_000_000, dtype=numpy.float32)
    x, y = runtime.buffer(a), runtime.buffer(2 * a)
    request = {"length": a.size, "aBuffer": x, "bBuffer": y, "resultBuffer": x}
    reply = client.ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", request)
    print(reply["processed"], "sums,", "all right" if numpy.array_equal(x.read(), 3 * a) else "some wrong")
