"""Asks this project's actors from Python, with NumPy arrays, and checks what they answer:
main.py PLUGIN PROJECT_FOLDER [ENGINE]"""

import pathlib
import sys

import gyre
import numpy

plugin, folder = sys.argv[1], pathlib.Path(sys.argv[2])
engine = sys.argv[3] if len(sys.argv) > 3 else "cpu"

schemas = {
    "till/schemas/order.capnp": "schemas/order.capnp",
    "till/schemas/rounding.capnp": "schemas/rounding.capnp",
    "till/schemas/adjust.capnp": "schemas/adjust-v1.0,draft.capnp",
    "shop/units.capnp": "imports/shop/units.capnp",
}
schema = {name: (folder / path).read_text() for name, path in schemas.items()}
with gyre.launch(gyre.Actors.load(plugin, "till", schema), engine=engine) as runtime:
    client = runtime.client()
    order = client.ask("till::Till", 1, "OrderRequest", {"amount": 2, "unit": "dozen"})
    print("sold:", order["pieces"])
    prices = numpy.array([1, 20, -300], dtype=numpy.int32)
    adjusted = client.ask("till::Adjuster", 1, "AdjustRequest", {"operation": "multiply", "by": 3, "prices": prices})
    print("prices:", *adjusted["prices"])
    assert order["pieces"] == 24 and numpy.array_equal(adjusted["prices"], 3 * prices)

with gyre.launch(engine=engine) as runtime:  # the built-in actors, and arrays in buffers
    a = numpy.arange(100_000, dtype=numpy.float32)
    x, y = runtime.buffer(a), runtime.buffer(2 * a)
    request = {"length": a.size, "aBuffer": x, "bBuffer": y, "resultBuffer": x}
    reply = runtime.client().ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", request)
    assert reply["processed"] == a.size and numpy.array_equal(x.read(), 3 * a)
    print("sums:", reply["processed"])
