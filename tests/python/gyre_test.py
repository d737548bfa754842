"""The Python package, on the CPU engine, or on the one that GYRE_TEST_ENGINE names."""

import asyncio
import gc
import math
import os
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import gyre

ENGINE = os.environ.get("GYRE_TEST_ENGINE", "cpu")
ADD, ECHO = "gyre::actors::VectorAdd", "gyre::actors::Echo"

POINT = """@0xe1d2c3b4a5968778;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("test");
using Buffer = import "/gyre/messages/buffer.capnp";
struct Point {
  big @0 :Int64; unsignedBig @1 :UInt64; bytes @2 :Data; ratio @3 :Float64; name @4 :Text;
  inner @5 :List(Inner); struct Inner { x @0 :Int16; flags @1 :List(Bool); }
  union { a @6 :Int8; b @7 :Void; }
  place :group { y @8 :UInt64; }
  kind @9 :Kind; enum Kind { plain @0; fancy @1; }
  buffer @10 :Buffer.BufferHandle;
  numbers @11 :List(Int64);
}
"""

BATCH = """@0xe1d2c3b4a596877a;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("test");
struct Batch { orders @0 :List(Order); tags @1 :List(List(Text)); raw @2 :Data; rate @3 :Float32; on @4 :Bool; }
struct Order {
  id @0 :UInt64;
  price :group { cents @1 :Int16; unit @2 :Unit; }
  union { limit @3 :Int32; market @4 :Void; stop @5 :Price; }
}
struct Price { cents @0 :Int16; }
enum Unit { euro @0; dollar @1; }
"""

COUNTER = """@0xe1d2c3b4a5968779;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("my");
struct Add { amount @0 :Int64; }
struct Sum { value @0 :Int64; key @1 :UInt64; }
"""
COUNTER_SOURCE = """#pragma once
#include <gyre/device/context.hpp>
#include <my/counter.view.hpp>
namespace my {
struct Counter {
  int64_t sum = 0;
  GYRE_DEVICE void on(gyre::Context& ctx, view::Add::Reader in, view::Sum::Builder out) {
    const int64_t before = sum;
    ctx.sync();
    if (ctx.rank() == 0) sum = before + in.getAmount();
    out.setValue(before + in.getAmount());
    out.setKey(ctx.key());
  }
};
}
"""


def launch(**options):
    return gyre.launch(engine=ENGINE, **options)


class Messages(unittest.TestCase):
    def test_dicts_come_back_from_bytes_as_they_were(self):
        schema = gyre.Schema({"shop/point.capnp": POINT})
        fields = {
            "big": -(2**63),
            "unsignedBig": 2**64 - 1,
            "bytes": b"\x00\xff",
            "ratio": math.inf,
            "name": 'a "name", Größe',
            "inner": [{"x": -5, "flags": [True, False]}, {"x": 7, "flags": []}],
            "a": -3,
            "place": {"y": 2**53 + 1},
            "kind": "fancy",
            "numbers": [2**62 + 1, -1],
        }
        for encoding in ("body", "stream", "packed"):
            message = schema.encode("Point", fields, encoding)
            self.assertEqual(schema.decode("Point", message, encoding), fields)
        self.assertEqual(schema.decode("Point", schema.encode("Point", {}))["place"], {"y": 0})
        self.assertTrue(math.isnan(schema.decode("Point", schema.encode("Point", {"ratio": math.nan}))["ratio"]))
        self.assertEqual(
            schema.decode("Point", schema.encode("Point", {"numbers": numpy.arange(3)}))["numbers"], [0, 1, 2]
        )
        self.assertEqual(schema.type_id("Point"), schema.type_id("shop/point.capnp:Point"))
        self.assertEqual(list(schema.views()), ["shop/point.view.hpp"])

    def test_what_is_wrong_with_a_schema_or_a_message_is_said(self):
        with self.assertRaisesRegex(gyre.BadArgument, r"bad\.capnp:1:\d+: "):
            gyre.Schema({"bad.capnp": "struct"})
        schema = gyre.Schema({"point.capnp": POINT})
        with self.assertRaisesRegex(gyre.BadArgument, "Pointt"):
            schema.type_id("Pointt")
        with self.assertRaisesRegex(gyre.BadArgument, "bigg"):
            schema.encode("Point", {"bigg": 3})
        with self.assertRaises(gyre.BadArgument):
            schema.encode("Point", {"kind": "unheard-of"})
        with self.assertRaises(gyre.Error) as raised:
            schema.decode("Point", b"\xff" * 16)
        self.assertEqual(raised.exception.name, "malformed")
        with self.assertRaises(gyre.BadArgument):
            schema.encode("Point", {}, "zipped")

    def test_a_value_that_its_field_does_not_take_is_named_by_path_value_and_what_is_expected(self):
        schema = gyre.Schema({"batch.capnp": BATCH})

        class Odd:
            def odd(self):
                raise RuntimeError("odd")

            __index__ = __float__ = __bytes__ = __repr__ = odd

        def order(**fields):
            return {"orders": [{}, {}, {}, fields]}

        for message, says in (
            (order(price={"cents": "x"}), "orders[3].price.cents is 'x'; give an integer from -32768 to 32767, for a Int16"),
            (order(price={"cents": 40000}), "orders[3].price.cents is 40000; give an integer from -32768 to 32767"),
            (order(price={"cents": 2.5}), "orders[3].price.cents is 2.5; give an integer"),
            (order(id=-1), f"orders[3].id is -1; give an integer from 0 to {2**64 - 1}, for a UInt64"),
            (order(id=2**64), f"orders[3].id is {2**64}; give"),
            (order(id=True), "orders[3].id is True; give an integer"),
            (order(id=None), "orders[3].id is None; give an integer"),
            (order(price={"unit": "pound"}), "orders[3].price.unit is 'pound'; give one of euro, dollar"),
            (order(price={"unit": 1}), "orders[3].price.unit is 1; give one of euro, dollar"),
            (order(price=5), "orders[3].price is 5; give a dict of fields"),
            (order(stop=[1]), "orders[3].stop is [1]; give a dict of fields, for a Price"),
            (order(market=1), "orders[3].market is 1; give None"),
            (order(limit=1, market=None), "orders[3]: limit and market are fields of one union of Order"),
            (order(prise=5), "orders[3]: Order has no field 'prise' (given 5); is it price? It has id, price, limit"),
            ({"order": []}, "Batch has no field 'order' (given []); is it orders?"),
            ({"orders": "abc"}, "orders is 'abc'; give a list or an array, for a List(Order)"),
            ({"orders": {"id": 1}}, "orders is {'id': 1}; give a list"),
            ({"orders": 7}, "orders is 7; give a list"),
            ({"tags": [["a"], ["b", b"c"]]}, "tags[1][1] is b'c'; give a str, for a Text"),
            ({"tags": [["\ud800"]]}, "tags[0][0] is '\\ud800'; give a str of whole characters"),
            ({"raw": "text"}, "raw is 'text'; give bytes, for Data"),
            ({"raw": 3}, "raw is 3; give bytes, for Data"),
            ({"raw": [256]}, "raw is [256]; give bytes, for Data"),
            ({"rate": "1"}, "rate is '1'; give a number, for a Float32"),
            ({"rate": 1e300}, "rate is 1e+300; give a number that a Float32 holds"),
            ({"on": 1}, "on is 1; give True or False, for a Bool"),
            (order(amount=5), "orders[3]: Order has no field 'amount' (given 5); it has id, price, limit"),
            (order(id=10**5000), "orders[3].id is of type int, whose repr() raises ValueError; give an integer"),
            (order(price={"cents": [10**5000]}), "orders[3].price.cents is of type list, whose repr() raises"),
            (order(id=Odd()), "orders[3].id is of type Odd, whose repr() raises RuntimeError; give an integer"),
            ({"rate": 10**5000}, "rate is of type int, whose repr() raises ValueError; give a number"),
            ({"rate": Odd()}, "rate is of type Odd, whose repr() raises RuntimeError; give a number"),
            ({"raw": Odd()}, "raw is of type Odd, whose repr() raises RuntimeError; give bytes"),
            ({10**5000: 1}, "Batch has no field of type int, whose repr() raises ValueError (given 1); it has orders"),
        ):
            with self.subTest(says=says), self.assertRaises(gyre.BadArgument) as raised:
                schema.encode("Batch", message)
            self.assertIn("making a message Batch: " + says, str(raised.exception))
            self.assertEqual(raised.exception.name, "bad_json")
        whole = {
            "orders": [{"id": numpy.uint64(2**64 - 1), "price": {"cents": numpy.int16(-5), "unit": "dollar"}, "market": None}],
            "tags": [["a"], []], "raw": bytearray(b"\x01\xff"), "rate": numpy.float32(0.5), "on": numpy.bool_(True),
        }
        self.assertEqual(
            schema.decode("Batch", schema.encode("Batch", whole)),
            {
                "orders": [{"id": 2**64 - 1, "price": {"cents": -5, "unit": "dollar"}, "market": None}],
                "tags": [["a"], []], "raw": b"\x01\xff", "rate": 0.5, "on": True,
            },
        )


class Asks(unittest.TestCase):
    def setUp(self):
        self.runtime = launch(workers=2)
        self.client = self.runtime.client()

    def tearDown(self):
        self.assertTrue(self.runtime.terminate()["balanced"])
        self.runtime.close()

    def test_a_dict_is_answered_by_a_dict(self):
        for operation, result in (("add", [11, 22.5]), ("multiply", [10, 50]), ("divide", [0.1, 0.125])):
            reply = self.client.ask(ADD, 1, "VectorAddRequest", {"operation": operation, "a": [1, 2.5], "b": [10, 20]})
            self.assertTrue(reply["success"])
            self.assertEqual(reply["processed"], 2)
            numpy.testing.assert_array_equal(numpy.float32(reply["result"]), numpy.float32(result))
            self.assertIsInstance(reply["processingNs"], int)
        reply = self.client.ask(ADD, 1, "VectorAddRequest", {"a": [1], "b": []})
        self.assertEqual((reply["success"], reply["error"]), (False, "lengthsDiffer"))

    def test_bytes_are_answered_by_bytes(self):
        schema = self.runtime.schema
        for encoding in ("body", "stream", "packed"):
            request = schema.encode("EchoRequest", {"sequence": 2**64 - 5, "payload": list(range(1000))}, encoding)
            reply = self.client.ask(ECHO, 9, "EchoRequest", request, encoding=encoding)
            self.assertIsInstance(reply, bytes)
            self.assertEqual(
                schema.decode("EchoResponse", reply), {"sequence": 2**64 - 5, "payload": list(range(1000))}
            )
        # By hand: the root pointer, the sequence, no payload; and the request's type by its number.
        words = struct.pack("<QQQ", 1 << 32 | 1 << 48, 42, 0)
        reply = self.client.ask(ECHO, 0, schema.type_id("EchoRequest"), words)
        self.assertEqual(schema.decode("EchoResponse", reply), {"sequence": 42, "payload": []})

    def test_failures_raise_with_their_name_and_text(self):
        with self.assertRaisesRegex(gyre.Error, "unknown_actor") as raised:
            self.client.ask("nobody", 0, "EchoRequest", {})
        self.assertEqual((raised.exception.name, raised.exception.status), ("unknown_actor", 4))
        with self.assertRaisesRegex(gyre.Error, "payload of EchoRequest"):
            self.client.ask(ECHO, 0, "EchoRequest", struct.pack("<QQQ", 1 << 32 | 1 << 48, 0, 1 | 5 << 32 | 9 << 35))
        with self.assertRaisesRegex(gyre.BadArgument, "sequence is 'x'; give an integer from 0"):
            self.client.ask(ECHO, 0, "EchoRequest", {"sequence": "x"})
        for message in (5, "text", None, [1]):
            with self.assertRaisesRegex(gyre.BadArgument, "give a dict of its fields, or bytes"):
                self.client.tell(ECHO, 0, "EchoRequest", message)
        with self.assertRaises(gyre.BadArgument):
            self.client.ask(ECHO, 0, "EchoRequest", {}, timeout=-1)
        with self.assertRaises(gyre.BadArgument):
            self.client.ask(ECHO, 0, "EchoRequest", b"", encoding="zipped")

    def test_keys_and_sizes_that_do_not_fit_are_refused_not_cut(self):
        for key in (-1, 1 << 64, 10**5000):
            for use in (
                lambda: self.client.ask(ADD, key, "VectorAddRequest", {}),
                lambda: self.client.tell(ADD, key, "VectorAddRequest", {}),
                lambda: self.client.start(ADD, key),
                lambda: self.client.stop(ADD, key),
            ):
                with self.assertRaisesRegex(gyre.BadArgument, "key"):
                    use()
        with self.assertRaisesRegex(gyre.BadArgument, "max_reply_bytes"):
            self.client.ask(ADD, 1, "VectorAddRequest", {}, max_reply_bytes=1 << 32)
        self.assertEqual(self.client.ask(ADD, (1 << 64) - 1, "VectorAddRequest", {"a": [1], "b": [2]})["result"], [3])

    def test_messages_are_told_and_dead_letters_say_what_they_were(self):
        self.client.tell(ECHO, 6, "EchoRequest", {"sequence": 1})
        self.client.ask(ECHO, 6, "EchoRequest", {})
        self.runtime.deactivate()
        self.client.tell(ECHO, 7, "EchoRequest", {"sequence": 4711})
        with self.assertRaises(gyre.Error) as raised:
            self.client.ask(ECHO, 7, "EchoRequest", {})
        self.assertEqual(raised.exception.name, "inactive")
        self.runtime.activate()
        self.client.ask(ECHO, 7, "EchoRequest", {})
        self.runtime.drain()
        (letter,) = self.runtime.dead_letters()
        self.assertEqual((letter.reason, letter.actor, letter.key, letter.is_ask), ("inactive", ECHO, 7, False))
        self.assertIn("at key 7", letter.text)
        self.assertEqual(self.runtime.schema.decode("EchoRequest", letter.body)["sequence"], 4711)
        self.assertEqual(self.runtime.dead_letters(), [])
        stats = self.runtime.stats()
        self.assertEqual((stats["tells_accepted"], stats["tells_dead_letters"], stats["asks_error_replies"]), (2, 1, 1))

    def test_threads_share_a_client(self):
        wrong = []

        def asks(thread):
            for i in range(50):
                sequence = thread * 1000 + i
                if self.client.ask(ECHO, thread, "EchoRequest", {"sequence": sequence})["sequence"] != sequence:
                    wrong.append(sequence)

        threads = [threading.Thread(target=asks, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.runtime.stats()["asks_answered"], 200)

    def test_a_runtime_says_what_it_is(self):
        info = self.runtime.info()
        self.assertEqual((info["engine"], info["workers"], info["state"]), (ENGINE, 2, "active"))
        self.assertGreater(len(info["device_name"]), 0)
        schema = self.runtime.schema
        self.assertIn((ECHO, schema.type_id("EchoRequest"), schema.type_id("EchoResponse")), self.runtime.handlers())


class Awaited(unittest.TestCase):
    def setUp(self):
        self.runtime = launch(workers=2, slots=16)
        self.client = self.runtime.client()

    def tearDown(self):
        self.assertTrue(self.runtime.terminate()["balanced"])
        self.runtime.close()

    def test_many_asks_are_awaited_at_once(self):
        async def one(i):
            reply = await self.client.ask_async(ECHO, i, "EchoRequest", {"sequence": i, "payload": [i] * (i % 7)})
            return reply == {"sequence": i, "payload": [i] * (i % 7)}

        async def all_of_them():  # more than the rings have slots
            return await asyncio.gather(*(one(i) for i in range(200)))

        self.assertEqual(asyncio.run(all_of_them()), [True] * 200)
        self.assertEqual(asyncio.run(all_of_them()), [True] * 200)  # in another loop
        self.assertEqual(self.runtime.stats()["asks_answered"], 400)

    def test_failures_are_raised_where_they_are_awaited(self):
        async def fails():
            with self.assertRaisesRegex(gyre.Error, "payload of EchoRequest"):
                words = struct.pack("<QQQ", 1 << 32 | 1 << 48, 0, 1 | 5 << 32 | 9 << 35)
                await self.client.ask_async(ECHO, 0, "EchoRequest", words)
            with self.assertRaisesRegex(gyre.Error, "unknown_actor"):
                await self.client.ask_async("nobody", 0, "EchoRequest", {})

        asyncio.run(fails())

    def test_a_cancelled_task_gives_its_ask_up(self):
        async def cancels():
            tasks = [asyncio.create_task(self.client.ask_async(ECHO, i, "EchoRequest", {})) for i in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            for outcome in outcomes[1::2]:
                self.assertEqual(outcome["sequence"], 0)
            for outcome in outcomes[::2]:
                self.assertIsInstance(outcome, asyncio.CancelledError)

        asyncio.run(cancels())
        self.runtime.drain()
        stats = self.runtime.stats()
        self.assertEqual(stats["asks_in_flight"], 0)
        self.assertEqual(stats["asks_accepted"], stats["asks_answered"] + stats["asks_cancelled"])


class Buffers(unittest.TestCase):
    def setUp(self):
        self.runtime = launch()
        self.client = self.runtime.client()

    def tearDown(self):
        self.runtime.close()

    def add(self, a, b, result, length):
        return self.client.ask(
            ADD, 0, "VectorAddRequest", {"length": length, "aBuffer": a, "bBuffer": b, "resultBuffer": result}
        )

    def test_arrays_are_added_in_buffers_and_come_back(self):
        a = numpy.random.default_rng(1).random(100_000, dtype=numpy.float32)
        b = numpy.arange(100_000, dtype=numpy.float32)
        for memory in ("device", "pinned"):
            with self.runtime.buffer(a, memory) as x, self.runtime.buffer(b[::1], memory) as y, self.runtime.buffer(
                ("float32", 100_000), memory
            ) as z:
                self.assertEqual(self.add(x, y, z, 100_000)["processed"], 100_000)
                numpy.testing.assert_array_equal(z.read(), a + b)
                some = numpy.zeros(10, dtype=numpy.float32)
                self.assertIs(z.read(some, offset=5), some)
                numpy.testing.assert_array_equal(some, (a + b)[5:15])
                if memory == "pinned":
                    view = z.view()
                    numpy.testing.assert_array_equal(view, a + b)
                    view[0] = -1  # in place
                    self.assertEqual(z.read()[0], -1)
                    with self.assertRaises(BufferError):
                        z.close()
                    del view
                    gc.collect()
                else:
                    with self.assertRaises(gyre.Error):
                        z.view()
        stats = self.runtime.stats()
        self.assertEqual(stats["buffers_in_use"], [0, 0, 0])
        self.assertGreater(stats["region_bytes"], 1 << 16)
        self.assertGreater(stats["actor_bytes"], 0)
        self.assertLessEqual(stats["device_free_bytes"], stats["device_bytes"])

    def test_copies_go_on_by_themselves_and_are_awaited(self):
        arrays = [numpy.random.default_rng(n).random(200_000) for n in range(4)]
        with self.runtime.buffer(("float64", 200_000)) as buffer:
            begun = []
            for array in arrays:  # in their order
                begun += [buffer.write_async(array), buffer.read_async()]
            for n, array in enumerate(arrays):
                self.assertIs(begun[2 * n].wait(), array)
                numpy.testing.assert_array_equal(begun[2 * n + 1].wait(), array)
                self.assertTrue(begun[2 * n].done())
            part = numpy.zeros(10)
            self.assertIs(buffer.read_async(part, offset=5).wait(60), part)
            numpy.testing.assert_array_equal(part, arrays[-1][5:15])

            async def both():
                writing = buffer.write_async(arrays[0])
                reading = buffer.read_async()
                twice = await asyncio.gather(reading, reading, writing)
                again = await reading  # it is done
                return twice[:2] + [again]

            for got in asyncio.run(both()):
                numpy.testing.assert_array_equal(got, arrays[0])
            # Nobody keeps the array, nor the copy.
            buffer.write_async(numpy.full(200_000, 3.0))
            gc.collect()
            numpy.testing.assert_array_equal(buffer.read(), numpy.full(200_000, 3.0))
            with self.assertRaises(gyre.Error):
                buffer.write_async(arrays[0], offset=1)
            with self.assertRaises(gyre.BadArgument):
                buffer.read_async(numpy.zeros(4, dtype="int8"))
        self.assertEqual(self.runtime.stats()["buffers_in_use"], [0, 0, 0])

    def test_elements_of_every_type_are_kept(self):
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
            array = numpy.arange(100).astype(name).reshape(10, 10).T  # neither flat nor contiguous
            buffer = self.runtime.buffer(array)
            numpy.testing.assert_array_equal(buffer.read().reshape(10, 10), array)
            self.assertEqual(buffer.handle()["element"], name)
            self.assertEqual(buffer.handle(3)["length"], 3)
            buffer.close()

    def test_numpy_uses_a_buffer_of_the_cpu_engine_in_place(self):
        ones = numpy.ones(50, dtype="float32")
        for share in (numpy.asarray, numpy.from_dlpack):
            buffer = self.runtime.buffer(ones)
            shared = share(buffer)
            self.client.ask(ADD, 0, "VectorAddRequest",
                            {"length": 50, "aBuffer": buffer, "bBuffer": buffer, "resultBuffer": buffer})
            numpy.testing.assert_array_equal(shared, 2 * ones)
            buffer.write([9], 7)
            self.assertEqual(shared[7], 9)
            self.assertFalse(hasattr(buffer, "__cuda_array_interface__"))
            buffer.close()
            del buffer
            self.runtime.buffer(("float32", 50)).close()
            self.assertEqual(shared[7], 9)

    def test_what_is_wrong_with_a_buffer_is_said(self):
        with self.assertRaises(gyre.BadArgument):
            self.runtime.buffer(("complex64", 4))
        with self.assertRaises(gyre.BadArgument):
            self.runtime.buffer(("float32", 4), "cloud")
        with self.assertRaises(gyre.Error):
            self.runtime.buffer(("float32", 0))
        buffer = self.runtime.buffer(("float32", 4))
        with self.assertRaises(gyre.Error):
            buffer.write(numpy.zeros(5))
        with self.assertRaises(gyre.BadArgument):
            buffer.read(numpy.zeros(4))  # another type
        with self.assertRaises(gyre.BadArgument):
            buffer.read(offset=5)
        stale = buffer.handle()
        buffer.close()
        buffer.close()
        with self.assertRaises(gyre.Closed):
            buffer.read()
        with self.assertRaises(gyre.Error) as raised:
            self.add(stale, stale, stale, 4)
        self.assertEqual(raised.exception.name, "bad_buffer")


class Runtimes(unittest.TestCase):
    def test_wrong_options_are_named_before_anything_is_launched(self):
        for options, said in (
            ({"slots": 3}, "slots"),
            ({"workers": -1}, "workers"),
            ({"workers": 2**32}, "workers"),
            ({"no_such": 1}, "no_such"),
            ({"transport": "pigeon"}, "pigeon"),
            ({"types": ["a"]}, "source"),
        ):
            with self.subTest(options), self.assertRaisesRegex(gyre.BadArgument, said):
                launch(**options)
        with self.assertRaises(gyre.BadArgument):
            gyre.launch(engine="abacus")

    def test_a_closed_runtime_refuses_by_name(self):
        with launch() as runtime:
            client = runtime.client()
            self.assertEqual(client.ask(ECHO, 1, "EchoRequest", {})["sequence"], 0)
        with self.assertRaises(gyre.Closed):
            client.ask(ECHO, 1, "EchoRequest", {})
        with self.assertRaises(gyre.Closed):
            runtime.stats()
        runtime.close()

    def test_source_text_runs_on_cuda_alone(self):
        actors = gyre.Actors.from_source(COUNTER_SOURCE, ["my::Counter"], {"my/counter.capnp": COUNTER})
        with self.assertRaisesRegex(gyre.EngineUnavailable, "CUDA only"):
            gyre.launch(actors, engine="cpu")
        with self.assertRaises(gyre.BadArgument):
            gyre.Actors.from_source("", ["not a type"])
        if ENGINE != "cuda":
            return
        with gyre.launch(
            source=COUNTER_SOURCE, types=["my::Counter"], schema={"my/counter.capnp": COUNTER}, engine="cuda", workers=2
        ) as runtime:
            client = runtime.client()
            for amount in range(10):
                reply = client.ask("my::Counter", 5, "Add", {"amount": amount})
            self.assertEqual(reply, {"value": 45, "key": 5})
            self.assertEqual(client.ask("my::Counter", 6, "Add", {"amount": 1}), {"value": 1, "key": 6})

    def load(self):
        with open(os.environ["GYRE_TEST_PLUGIN_SCHEMA"]) as file:
            schema = {"support/actors/probe.capnp": file.read()}
        return gyre.Actors.load(os.environ["GYRE_TEST_PLUGIN"], "probes", schema)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_actors_of_a_shared_object_run_on_every_engine(self):
        with gyre.launch(self.load(), engine=ENGINE) as runtime:
            self.assertEqual({actor for actor, _, _ in runtime.handlers()}, {"gyre_test::Probe"})
            client = runtime.client()
            reply = client.ask("gyre_test::Probe", 3, "ProbeRequest", {"action": "answer", "argument": 20})
            self.assertEqual((reply["value"], reply["key"]), (41, 3))
            client.start("gyre_test::Probe", 4)
            client.tell("gyre_test::Probe", 4, "ProbeNote", {"value": 5, "filler": [6, 7]})
            reply = client.ask("gyre_test::Probe", 4, "ProbeRequest", {"action": "sumOfNotes"})
            self.assertEqual(reply["value"], 18)
            self.assertEqual(list(client.actors("gyre_test::Probe", page=1)), list(client.actors("gyre_test::Probe")))
            self.assertEqual(sorted(client.actors("gyre_test::Probe")), [3, 4])
            self.assertEqual(client.read_state("gyre_test::Probe", 4), (18).to_bytes(8, "little"))
            with self.assertRaisesRegex(gyre.Error, "reading creates none"):
                client.read_state("gyre_test::Probe", 5)
            with self.assertRaises(gyre.Error):
                list(client.actors("gyre_test::Nobody"))
            client.stop("gyre_test::Probe", 4)
            note = {"value": 0}
            self.assertIsNone(client.tell_with_receipt("gyre_test::Probe", 4, "ProbeNote", note, timeout=1e5).wait())
            failing = client.tell_with_receipt(
                "gyre_test::Probe", 4, "ProbeRequest", {"action": "fail", "argument": 98}, expires_after=60
            )
            with self.assertRaisesRegex(gyre.Error, "code 98"):
                failing.wait()
            client.stop("gyre_test::Probe", 4)
            reply = client.ask("gyre_test::Probe", 4, "ProbeRequest", {"action": "sumOfNotes"})
            self.assertEqual(reply["value"], 0)
            with self.assertRaisesRegex(gyre.Error, "code 99"):
                client.ask("gyre_test::Probe", 4, "ProbeRequest", {"action": "fail", "argument": 99})
            with self.assertRaises(gyre.TimedOut):
                work = {"action": "work", "argument": 10**10}
                client.ask("gyre_test::Probe", 4, "ProbeRequest", work, timeout=0.05)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_actors_tell_the_host(self):
        speaker = "gyre_telling::Speaker"
        folder = os.path.dirname(os.environ["GYRE_TEST_PLUGIN_SCHEMA"])
        with open(os.path.join(folder, "telling.capnp")) as file:
            schema = {"support/actors/telling.capnp": file.read()}
        actors = gyre.Actors.load(os.environ["GYRE_TEST_PLUGIN"], "speakers", schema)
        with gyre.launch(actors, engine=ENGINE) as runtime:
            client = runtime.client()
            told, remarks = queue.Queue(), queue.Queue()

            def answer(sender, number):
                told.put((sender, number))
                client.tell(sender.actor, sender.key, "Hear", {"number": 10 * number["number"]})

            runtime.on("Number", answer)
            runtime.on("Remark", lambda sender, remark: remarks.put((sender.key, remark["number"])))
            self.assertEqual(client.ask(speaker, 3, "Speak", {"count": 4, "filler": 2})["told"], 4)
            for n in range(4):
                sender, number = told.get(timeout=60)
                self.assertEqual((sender.actor, sender.key, sender.worker), (speaker, 3, 0))
                self.assertEqual((number["number"], len(number["filler"])), (n, 2))
                self.assertEqual(remarks.get(timeout=60), (3, 10 * n))
            runtime.on("Remark", None)
            # What a handler raises does not end the others.
            raised = queue.Queue()
            hook, sys.unraisablehook = sys.unraisablehook, lambda raising: raised.put(raising.exc_value)
            try:
                runtime.on("Number", lambda sender, number: 1 / 0)
                client.ask(speaker, 3, "Speak", {"count": 1})
                self.assertIsInstance(raised.get(timeout=60), ZeroDivisionError)
            finally:
                sys.unraisablehook = hook
            runtime.drain(60)
            stats = runtime.stats()
            self.assertGreaterEqual(stats["told_handled"], 5)
            self.assertEqual(stats["told_sent"], stats["told_handled"] + stats["told_dropped"])
            self.assertEqual((stats["mail_lost"], stats["timers_set"]), (0, 0))
        with gyre.launch(engine=ENGINE) as runtime:
            with self.assertRaisesRegex(gyre.Error, "gyre::ToHost"):
                runtime.on(1, print)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_what_is_wrong_with_a_shared_object_is_said(self):
        path = os.environ["GYRE_TEST_PLUGIN"]
        with self.assertRaisesRegex(gyre.Error, "GYRE_EXPORT_ACTORS"):
            gyre.Actors.load(path, "others")
        with self.assertRaisesRegex(gyre.BadArgument, "no probes today"):
            gyre.Actors.load(path, "no_probes")
        with self.assertRaisesRegex(gyre.Error, "it exports probes, no_probes, speakers; name one of them"):
            gyre.Actors.load(path)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_a_shared_object_carries_its_schema(self):
        actors = gyre.Actors.load(os.environ["GYRE_TEST_PLUGIN"], "probes")
        with gyre.launch(actors, engine=ENGINE) as runtime:
            client = runtime.client()
            reply = client.ask("gyre_test::Probe", 3, "ProbeRequest", {"action": "answer", "argument": 20})
            self.assertEqual((reply["value"], reply["key"]), (41, 3))
            with self.assertRaisesRegex(gyre.BadArgument, "argument is 'x'; give an integer"):
                client.ask("gyre_test::Probe", 3, "ProbeRequest", {"argument": "x"})
        with gyre.launch(engine=ENGINE, schema={"point.capnp": POINT}) as runtime:  # beside the built-in actors' own
            self.assertEqual(runtime.client().ask(ECHO, 1, "EchoRequest", {"sequence": 3})["sequence"], 3)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_a_schema_that_differs_from_what_the_actors_carry_is_refused_with_the_field(self):
        path = os.environ["GYRE_TEST_PLUGIN"]
        with open(os.environ["GYRE_TEST_PLUGIN_SCHEMA"]) as file:
            text = file.read()

        def load(changed, to, count=1):
            self.assertEqual(text.count(changed), count)
            return gyre.Actors.load(path, "probes", {"support/actors/probe.capnp": text.replace(changed, to)})

        argument = "argument @1 :UInt64"
        filler = "filler @2 :List(UInt64);\n}\n\nstruct ProbeResponse"
        for changed, to, says in (
            (argument, "argument @1 :Text",
             "field argument of ProbeRequest is Text in the schema, and the actors were built with UInt64"),
            (argument, "argument @1 :Int64", "field argument of ProbeRequest is Int64 in the schema"),
            (argument, "argument @1 :UInt64 = 7", "field argument of ProbeRequest has another default"),
            (argument, "renamed @1 :List(UInt64)", "field renamed of ProbeRequest is List.UInt64. in the schema"),
            (argument + ";", "g :group { argument @1 :Float64; }",
             "field g.argument of ProbeRequest is Float64 in the schema, and the actors were built with UInt64"),
            (argument + ";", "g :group { h :group { a @1 :List(UInt64); } }", "field g.h.a of ProbeRequest is List"),
            (argument + ";", "argument :union { a @1 :UInt64; b @3 :Void; }",
             "field argument.a of ProbeRequest is another field of its union"),
            (filler, filler.replace(";", " = [1, 2];", 1), "field filler of ProbeRequest has another default"),
        ):
            with self.subTest(to=to), self.assertRaisesRegex(gyre.BadArgument, says) as raised:
                load(changed, to)
            self.assertEqual(raised.exception.name, "bad_schema")
        self.assertEqual(load(argument, "renamed @1 :UInt64").schema.decode("ProbeRequest", struct.pack(
            "<QQQQ", 2 << 32 | 1 << 48, 0, 5, 0))["renamed"], 5)
        # A group around a field is a revision of it.
        self.assertEqual(load(argument + ";", "g :group { a @1 :UInt64; b @3 :Text; }").schema.decode(
            "ProbeRequest", struct.pack("<QQQQ", 2 << 32 | 1 << 48, 0, 5, 0))["g"], {"a": 5})
        swapped = text.replace("answer @0", "answer @1").replace("fail @1", "fail @0")
        with self.assertRaisesRegex(gyre.BadArgument, "enumerant fail of Action has the number 0 in the schema, and .* 1"):
            gyre.Actors.load(path, "probes", {"support/actors/probe.capnp": swapped})
        file_id = text[text.index("@0x"):text.index(";")]
        with self.assertRaisesRegex(gyre.BadArgument, "struct .* has the id .*, and the actors were built with"):
            load(file_id, "@0xe1d2c3b4a596877b")
        probes = gyre.Actors.load(path, "probes")
        with self.assertRaisesRegex(gyre.BadArgument, "field argument of ProbeRequest"):
            gyre.launch(probes, engine=ENGINE, schema={"p.capnp": text.replace(argument, "argument @1 :Float64")})

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_an_interrupt_ends_a_blocking_ask(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        with gyre.launch(self.load(), engine=ENGINE, timeout_ms=60_000) as runtime:
            client = runtime.client()
            previous = signal.signal(signal.SIGALRM, interrupt)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with self.assertRaises(Interrupted):
                    client.ask("gyre_test::Probe", 0, "ProbeRequest", {"action": "work", "argument": 6 * 10**10})
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, previous)

    @unittest.skipUnless(os.environ.get("GYRE_TEST_PLUGIN"), "no shared object of actors")
    def test_a_task_that_is_cancelled_while_its_worker_works_frees_the_loop(self):
        async def cancels(client):
            work = {"action": "work", "argument": 6 * 10**10}
            task = asyncio.create_task(client.ask_async("gyre_test::Probe", 0, "ProbeRequest", work))
            await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with gyre.launch(self.load(), engine=ENGINE, timeout_ms=60_000) as runtime:
            asyncio.run(cancels(runtime.client()))
            self.assertEqual(runtime.stats()["asks_cancelled"], 1)


class Loading(unittest.TestCase):
    def test_a_library_that_is_none_or_another_versions_is_named(self):
        for library, says in (
            ("/no/libgyre.so", "cannot open shared object file.*set GYRE_LIBRARY to the path of libgyre.so"),
            ("libc.so.6", "libc.so.6 has no function gyre_version, which this package calls: it is another version's"),
        ):
            environment = {**os.environ, "GYRE_LIBRARY": library}
            done = subprocess.run([sys.executable, "-c", "import gyre"], env=environment, capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr.splitlines()[-1], f"^ImportError: loading Gyre's C library: .*{says}")


class CudaToolkit(unittest.TestCase):
    def path_of(self, folder, **environment):
        program = "import gyre, os; print(os.environ.get('GYRE_CUDA_PATH'))"
        environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}", **environment}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def test_the_folders_of_nvidia_packages_are_named_unless_the_environment_names_some(self):
        with tempfile.TemporaryDirectory() as folder:
            for below in ("nvidia/cuda_runtime/include", "nvidia/cuda_nvrtc/lib", "nvidia/other/share"):
                os.makedirs(os.path.join(folder, below))
            named = self.path_of(folder).split(":")
            self.assertIn(f"{folder}/nvidia/cuda_nvrtc", named)
            self.assertIn(f"{folder}/nvidia/cuda_runtime", named)
            self.assertNotIn(f"{folder}/nvidia/other", named)
            self.assertEqual(self.path_of(folder, GYRE_CUDA_PATH="/opt/cuda"), "/opt/cuda")


if __name__ == "__main__":
    unittest.main()
