"""Prepared asks of the Python package, on the CPU engine: once with the extension gyre._ask, once by ctypes."""

import asyncio
import math
import os
import signal
import struct
import threading
import unittest

import numpy

import gyre
from gyre import _prepared, _views

ADD, ECHO = "gyre::actors::VectorAdd", "gyre::actors::Echo"
PROBE = "gyre_test::Probe"

EVERYTHING = """@0xe1d2c3b4a596877c;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("test");
using Buffer = import "/gyre/messages/buffer.capnp";
struct Everything {
  i8 @0 :Int8 = -3; u8 @1 :UInt8; i16 @2 :Int16; u16 @3 :UInt16 = 500; i32 @4 :Int32; u32 @5 :UInt32;
  i64 @6 :Int64 = -7; u64 @7 :UInt64; f32 @8 :Float32 = 1.5; f64 @9 :Float64; on @10 :Bool = true; off @11 :Bool;
  kind @12 :Kind = fancy; enum Kind { plain @0; fancy @1; odd @2; }
  name @13 :Text; raw @14 :Data; numbers @15 :List(Int32); flags @16 :List(Bool); kinds @17 :List(Kind);
  names @18 :List(Text); table @19 :List(List(Float64)); points @20 :List(Point); point @21 :Point;
  place :group { x @22 :Int16; union { near @23 :Void; far @24 :Float32; } }
  union { a @25 :UInt8; b @26 :Point; c @27 :Void; }
  handle @28 :Buffer.BufferHandle;
  standard @29 :List(Int8) = [1, 2];
  doubles @30 :List(Float64);
}
struct Point { x @0 :Float64; label @1 :Text; weight @2 :Int16 = 4; }
"""


class Bytes:
    """A message's bytes, as views read them."""

    def __init__(self, content, what="a reply Everything"):
        self._what, self._generation = what, 0
        self.put(content)

    def put(self, content):
        self._size = len(content)
        self._memory = memoryview(bytearray(content) + bytes(8))
        self._generation += 1


class Views(unittest.TestCase):
    def setUp(self):
        self.schema = gyre.Schema({"everything.capnp": EVERYTHING})
        self.classes = _views.Classes(self.schema)
        self.id = self.schema.type_id("Everything")

    def view(self, content, settable=False):
        self.body = Bytes(content)
        return self.classes.root(self.body, self.id, settable)

    def test_a_view_reads_what_was_encoded(self):
        fields = {
            "i8": 5, "u8": 255, "i16": -30000, "u16": 7, "i32": -(2**31), "u32": 2**32 - 1, "i64": 2**62, "u64": 2**64 - 1,
            "f32": -0.25, "f64": 1e300, "on": False, "off": True, "kind": "odd", "name": "Größe", "raw": b"\x00\xff",
            "numbers": [1, -2, 3], "flags": [True] * 9 + [False], "kinds": ["fancy", "plain"], "names": ["", "b"],
            "table": [[1.5], [], [2, 3]], "points": [{"x": 1, "label": "one"}, {"x": 2, "weight": -1}],
            "point": {"x": 9}, "place": {"x": -1, "far": 2.5}, "b": {"label": "chosen"},
        }  # fmt: skip
        view = self.view(self.schema.encode("Everything", fields))
        for name in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "on", "off", "kind", "name"):
            self.assertEqual(getattr(view, name), fields[name], name)
        self.assertEqual(bytes(view.raw), b"\x00\xff")
        self.assertEqual((view.numbers.dtype, view.numbers.tolist()), (numpy.int32, [1, -2, 3]))
        self.assertEqual(view.flags.tolist(), fields["flags"])
        self.assertEqual(view.kinds, ["fancy", "plain"])
        self.assertEqual(list(view.names), ["", "b"])
        self.assertEqual([row.tolist() for row in view.table], [[1.5], [], [2, 3]])
        self.assertEqual([(one.x, one.label, one.weight) for one in view.points], [(1, "one", 4), (2, "", -1)])
        self.assertEqual(view.points[-1].x, 2)
        self.assertEqual(view.points[:1][0].label, "one")
        self.assertEqual((view.point.x, view.point.weight), (9, 4))
        self.assertEqual((view.place.x, view.place.far), (-1, 2.5))
        self.assertEqual(view.b.label, "chosen")
        with self.assertRaisesRegex(gyre.BadArgument, "the union of Everything holds b; read that"):
            view.a
        with self.assertRaisesRegex(gyre.Error, "standard is its schema's default, .* as_dict"):
            view.standard
        with self.assertRaises(IndexError):
            view.points[2]
        with self.assertRaises(ValueError):
            view.numbers[0] = 1
        with self.assertRaisesRegex(gyre.BadArgument, "setting i8 of a reply Everything: it is a reply"):
            view.i8 = 1
        with self.assertRaisesRegex(AttributeError, "Everything has no field 'nombers'; is it numbers"):
            view.nombers
        self.assertIn("far=2.5", repr(view.place))
        self.assertIn("numbers", dir(view))

    def test_a_null_root_has_every_default(self):
        for content in (b"", bytes(8)):
            view = self.view(content)
            self.assertEqual((view.i8, view.u16, view.i64, view.f32, view.on, view.kind), (-3, 500, -7, 1.5, True, "fancy"))
            self.assertEqual((view.name, len(view.numbers), len(view.points), view.point.weight), ("", 0, 0, 4))

    def test_what_a_view_sets_is_what_the_library_reads(self):
        empty = {
            "name": "123456", "raw": b"12", "numbers": [0, 0], "flags": [False] * 9, "kinds": ["plain"] * 2,
            "points": [{"label": "abc"}, {}], "point": {"label": "ab"}, "handle": {},
        }  # fmt: skip
        view = self.view(self.schema.encode("Everything", empty), settable=True)
        view.i8, view.u8, view.i16, view.u16 = -3, 1, 2, 501
        view.i32, view.u32, view.i64, view.u64 = 4, 5, -7, numpy.uint64(8)
        view.f32, view.f64, view.on, view.off = numpy.float32(1.5), math.inf, True, numpy.bool_(True)
        view.kind, view.name, view.raw = "fancy", "abc", b"\x01\x02"
        view.name = "größe"[:4]
        view.numbers[:] = [5, 6]
        view.numbers += 1
        view.flags = [True, False] * 4 + [True]
        view.kinds = ["odd", "fancy"]
        view.points[0].label, view.points[0].x, view.points[1].weight = "x", 2.5, 9
        view.point = {"x": -1, "label": "cd"}
        view.place = {"x": 3, "far": 1.25}
        view.a = 7
        handle = {"index": 3, "generation": 4, "runtime": 5, "element": "float32", "length": 6}

        class Named:
            def handle(self):
                return handle

        view.handle = Named()
        read = self.schema.decode("Everything", self.body._memory[: self.body._size].tobytes())
        wanted = {
            "i8": -3, "u8": 1, "i16": 2, "u16": 501, "i32": 4, "u32": 5, "i64": -7, "u64": 8, "f32": 1.5, "f64": math.inf,
            "on": True, "off": True, "kind": "fancy", "name": "größ", "raw": b"\x01\x02", "numbers": [6, 7],
            "flags": [True, False] * 4 + [True], "kinds": ["odd", "fancy"], "point": {"x": -1, "label": "cd", "weight": 4},
            "points": [{"x": 2.5, "label": "x", "weight": 4}, {"x": 0, "weight": 9}], "place": {"x": 3, "far": 1.25}, "a": 7,
            "handle": handle,
        }  # fmt: skip
        self.assertEqual({name: read[name] for name in wanted}, wanted)

    def test_a_wrong_value_is_named_with_what_the_field_takes(self):
        view = self.view(self.schema.encode("Everything", {"name": "ab", "numbers": [0] * 3, "doubles": [0]}), True)
        self.body._what = "a request Everything"
        for name, value, says in (
            ("i8", 128, "setting i8 of a request Everything to 128: give an integer from -128 to 127"),
            ("u64", -1, "u64 of a request Everything to -1: give an integer from 0"),
            ("f32", "x", "give a number, for a Float32"),
            ("on", 1, "give True or False"),
            ("kind", "dull", "give one of plain, fancy, odd"),
            ("name", "abc", "it has 3 bytes, and the request was prepared with 2"),
            ("name", b"a", "give a str"),
            ("numbers", numpy.zeros(4, "i4"), r"numbers .*: it is int32 of shape \(3,\), and int32 of shape \(4,\) is given"),
            ("numbers", numpy.zeros(3), r"it is int32 of shape \(3,\), and float64 of shape \(3,\) is given; convert it"),
            ("numbers", [1, 2, 2**31], "and int64 of shape"),
            ("numbers", "abc", "it is int32 of shape"),
            ("doubles", ["x"], "it is float64 of shape"),
            ("point", {"x": 1}, "the request was prepared without it"),
            ("place", 5, "give a dict of fields, for a "),
            ("c", 1, "give None, for a Void"),
            ("names", ["a"], "prepare the request with it"),
        ):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(gyre.BadArgument, says):
                setattr(view, name, value)
        self.assertEqual(view.a, 0)  # the member that was refused was not chosen
        with self.assertRaisesRegex(AttributeError, "Everything has no field 'nubers'.*is it numbers"):
            view.nubers = 1
        view.numbers = [2**31 - 1, -(2**31), 0]
        self.assertEqual(view.numbers.tolist(), [2**31 - 1, -(2**31), 0])

    def test_hostile_bytes_are_errors_by_name_and_never_read_past_the_end(self):
        whole = self.schema.encode("Everything", {
            "numbers": [1, 2, 3], "name": "abc", "points": [{"label": "x"}] * 2, "table": [[1], [2]], "flags": [True],
            "names": ["a"], "kinds": ["odd"], "point": {"label": "p"}, "raw": b"r", "b": {"x": 1}, "doubles": [1],
        })  # fmt: skip
        names = ("numbers", "name", "points", "table", "flags", "names", "kinds", "point", "raw", "doubles", "u64", "b")
        generator = numpy.random.default_rng(7)
        refused = 0
        view = self.view(whole)
        for _ in range(1500):
            changed = bytearray(whole[: 8 * generator.integers(1, len(whole) // 8 + 1)])
            for _ in range(generator.integers(0, 4)):
                changed[generator.integers(0, len(changed))] = generator.integers(0, 256)
            self.body.put(changed)
            for name in names:
                try:
                    value = getattr(view, name)
                    if isinstance(value, numpy.ndarray):
                        self.assertLessEqual(value.size, 8 * len(changed))
                        value.sum()
                    elif isinstance(value, _views.Structs):
                        for element in value[:100]:
                            element.label if isinstance(element, _views.View) else len(element)
                    elif isinstance(value, _views.View):
                        value.label
                except gyre.Error as error:
                    refused += 1
                    self.assertRegex(str(error), "^reading a reply Everything: ")
        self.assertGreater(refused, 100)

    def test_a_list_without_a_size_and_a_pointer_out_of_the_message_are_refused(self):
        fields = self.schema._structs[str(self.id)]["layout"]
        words, pointers = fields["words"], fields["pointers"]
        at = words + 1 + fields["fields"]["points"]["at"]
        content = [0] * (1 + words + pointers) + [0, 0]
        content[0] = words << 32 | pointers << 48
        for tag, pointer, says in (
            ((2**29 - 1) << 2, 1 | (len(content) - 2 - at - 1) << 2 | 7 << 32, "list of 536870911 structs"),
            (0, 1 | 1000 << 2 | 7 << 32, "leads out of the"),
            (0, 1 | 0x3FFFFFFF << 2 | (2**29 - 1) << 35, "elements without a size"),
            (0, 2, "its pointer is to no list"),
        ):
            content[-2], content[at] = tag, pointer
            view = self.view(struct.pack(f"<{len(content)}Q", *content))
            with self.subTest(says=says), self.assertRaisesRegex(gyre.Error, f"points: .*{says}") as raised:
                len(view.points)
            self.assertEqual(raised.exception.name, "malformed")


class Asks(unittest.TestCase):
    def setUp(self):
        actors = gyre.Actors.load(os.environ["GYRE_TEST_PLUGIN"], "probes")
        self.probes = gyre.launch(actors, engine="cpu", timeout_ms=60_000)
        self.runtime = gyre.launch(engine="cpu", workers=2)
        self.client = self.runtime.client()

    def tearDown(self):
        for runtime in (self.probes, self.runtime):
            self.assertTrue(runtime.terminate()["balanced"])
            self.assertEqual(runtime.stats()["asks_in_flight"], 0)
            runtime.close()

    def probe(self, **fields):
        return self.probes.client().prepare(PROBE, 1, "ProbeRequest", fields)

    def test_the_inner_call_is_the_one_that_this_run_is_to_show(self):
        module = os.environ.get("GYRE_TEST_ASK", "gyre._ask_by_ctypes")
        self.assertEqual(_prepared.Prepared.__bases__[0].__module__, module)

    def test_a_request_is_sent_again_and_again_and_each_reply_is_seen_in_place(self):
        ask = self.client.prepare(ADD, 1, "VectorAddRequest", {"operation": "multiply"}, a=64, b=64)
        a, b = ask.request.a, ask.request.b
        self.assertEqual((a.dtype, a.shape), (numpy.float32, (64,)))
        result = None
        for i in range(100):
            a[:] = numpy.arange(64) + i
            b[:] = i
            reply = ask()
            self.assertIs(reply, ask.reply)
            self.assertEqual((reply.success, reply.error, reply.processed), (True, "none", 64))
            numpy.testing.assert_array_equal(reply.result, (numpy.arange(64, dtype="f4") + i) * i)
            self.assertTrue(result is None or result is reply.result)  # one array, whose elements change
            result = reply.result
        ask.request.operation = "add"
        numpy.testing.assert_array_equal(ask().result, a + b)
        self.assertEqual(ask.as_dict()["processed"], 64)
        self.assertIn("processed=64", repr(ask.reply))

    def test_replies_change_their_shape_and_arrays_of_earlier_ones_stay_readable(self):
        ask = self.probes.client().prepare(PROBE, 1, "ProbeRequest", {"action": "grow"}, max_reply_bytes=50_000)
        kept = []
        for length in (1, 0, 3, 3, 5000, 2):  # 5000: more than a slot, and than the first memory
            ask.request.argument = length
            numpy.testing.assert_array_equal(ask().filler, numpy.arange(length))
            kept.append(ask.reply.filler)
        self.assertIs(kept[2], kept[3])
        self.assertEqual([len(one) for one in kept], [1, 0, 3, 3, 5000, 2])
        self.assertEqual(int(kept[4][-1]) + int(kept[1].sum()), 4999)
        for one in kept:
            self.assertFalse(one.flags.writeable)

    def test_lists_of_every_kind_are_prepared_by_their_lengths(self):
        schema = gyre.Schema({"everything.capnp": EVERYTHING})
        lengths = {"name": 5, "raw": 3, "numbers": 7, "flags": 70, "kinds": 5, "points": 3, "doubles": 2}
        type_id = schema.type_id("Everything")
        content = _prepared._append_lists(
            "preparing", schema, type_id, schema.encode(type_id, {"point": {"x": 1}, "names": ["a"]}), lengths
        )
        with self.assertRaisesRegex(gyre.BadArgument, "b is a field of the union of Everything"):
            _prepared._append_lists("preparing", schema, type_id, content, {"b": 1})
        read = schema.decode(type_id, content)
        self.assertEqual(read["name"], "\0" * 5)
        self.assertEqual((read["raw"], read["numbers"], read["doubles"]), (bytes(3), [0] * 7, [0, 0]))
        self.assertEqual((read["flags"], read["kinds"]), ([False] * 70, ["plain"] * 5))
        self.assertEqual(read["points"], [{"x": 0, "weight": 4}] * 3)
        self.assertEqual((read["point"]["x"], read["names"]), (1, ["a"]))

    def test_the_key_selects_the_actor(self):
        ask = self.probe(action="answer", argument=4)
        for key in (0, 7, 2**64 - 1):
            ask.key = key
            reply = ask()
            self.assertEqual((reply.value, reply.key, ask.key), (9, key, key))
        with self.assertRaisesRegex(gyre.BadArgument, "key -1"):
            ask.key = -1

    def test_several_are_in_flight_and_a_second_call_of_one_is_refused(self):
        asks = [self.probe(action="answer") for _ in range(20)]
        for number, ask in enumerate(asks):
            ask.request.argument = number
            ask.send()
            ask.request.argument = 1000  # the request was copied when it was sent
        for use in (asks[3], asks[3].send):
            with self.assertRaisesRegex(gyre.Error, "request ProbeRequest: it is in flight; wait for its reply") as raised:
                use()
            self.assertEqual((raised.exception.name, raised.exception.status), ("busy", 1003))
        for number, ask in reversed(list(enumerate(asks))):
            self.assertEqual(ask.wait().value, 2 * number + 1)
        with self.assertRaisesRegex(gyre.BadArgument, "nothing is in flight"):
            asks[0].wait()
        self.assertEqual(asks[3]().value, 2001)

    def test_a_thread_waits_without_the_interpreters_lock(self):
        ask = self.probe(action="work", argument=6 * 10**10)
        ask.send()
        outcomes = []

        def wait():
            try:
                outcomes.append(ask.wait().value)
            except gyre.Error as error:
                outcomes.append(error.name)

        waits = threading.Thread(target=wait)
        waits.start()
        # This thread runs while the other waits, and what it uses is refused: by "in flight", either way.
        with self.assertRaisesRegex(gyre.Error, "in flight"):
            ask()
        self.probes.terminate()  # ends the work
        waits.join()
        # Told to stop while it worked, or never begun; not 0 after a minute of work that nobody could end.
        self.assertIn(outcomes, ([1], ["terminated"]))

    def test_failures_are_raised_and_the_last_reply_is_gone(self):
        ask = self.probe(action="answer", argument=1)
        with self.assertRaisesRegex(gyre.Error, "reading a reply ProbeResponse: there is none"):
            ask.reply.value
        with self.assertRaisesRegex(gyre.Error, "there is none"):
            ask.as_dict()
        self.assertEqual(ask().value, 3)
        ask.request.action, ask.request.argument = "fail", 99
        with self.assertRaisesRegex(gyre.Error, "code 99"):
            ask()
        with self.assertRaisesRegex(gyre.Error, "there is none"):
            ask.reply.value
        ask.request.action = "answer"
        self.assertEqual(ask().value, 199)
        slow = self.probes.client().prepare(PROBE, 1, "ProbeRequest", {"action": "work", "argument": 10**10}, timeout=0.05)
        with self.assertRaises(gyre.TimedOut):
            slow()
        with self.assertRaises(gyre.TimedOut):
            slow()
        with self.assertRaises(TypeError):
            ask(1)

    def test_what_is_wrong_with_a_preparation_is_said(self):
        for arguments, lengths, says in (
            (("nobody", 1, "EchoRequest"), {}, f"EchoRequest of nobody: the runtime has no such handler; .*{ECHO} EchoRequest"),
            ((ECHO, 1, "EchoResponse"), {}, "no such handler"),
            ((ECHO, 1, "EchoRequests"), {}, "EchoRequests"),
            ((ECHO, 1, 5), {}, "no struct has the id 0x5"),
            ((ECHO, 1, "EchoRequest"), {"payloads": 3}, r"has no field 'payloads' \(given 3\); is it payload"),
            ((ECHO, 1, "EchoRequest"), {"payload": -1}, "payload=-1: give the number of its elements"),
            ((ECHO, 1, "EchoRequest"), {"payload": [1]}, "give the number of its elements"),
            ((ECHO, 1, "EchoRequest"), {"payload": 1 << 29}, "give the number of its elements, below 536870912"),
            ((ECHO, 1, "EchoRequest", {"payload": [1]}), {"payload": 1}, "payload is given twice"),
            ((ECHO, 1, "EchoRequest"), {"sequence": 1}, "it is no list of numbers"),
            ((ECHO, 1, "EchoRequest", {"sequence": "x"}), {}, "sequence is 'x'; give an integer"),
            ((ECHO, -1, "EchoRequest"), {}, "key -1"),
        ):
            with self.subTest(says=says), self.assertRaisesRegex(gyre.Error, says):
                self.client.prepare(*arguments, **lengths)
        note = self.probes.schema.type_id("ProbeNote")
        with self.assertRaisesRegex(gyre.BadArgument, "its handler sends no reply; use Client.tell"):
            self.probes.client().prepare(PROBE, 1, note)
        ask = self.client.prepare(ECHO, 1, "EchoRequest", payload=1 << 24)
        with self.assertRaises(gyre.Error) as raised:
            ask()
        self.assertEqual(raised.exception.name, "too_large")

    def test_a_closed_runtime_is_named_and_views_stay_readable(self):
        with gyre.launch(engine="cpu") as runtime:
            ask = runtime.client().prepare(ECHO, 1, "EchoRequest", {"sequence": 5}, payload=3)
            payload = ask().payload
        with self.assertRaises(gyre.Closed):
            ask()
        self.assertEqual(payload.tolist(), [0, 0, 0])
        self.assertEqual(ask.request.sequence, 5)

    def test_an_interrupt_ends_a_call_and_leaves_what_was_sent_in_flight(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        ask = self.probe(action="work", argument=6 * 10**10)
        previous = signal.signal(signal.SIGALRM, interrupt)
        try:
            for use in (ask, lambda: (ask.send(), ask.wait())):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with self.assertRaises(Interrupted):
                    use()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        with self.assertRaisesRegex(gyre.Error, "in flight"):
            ask.send()

    def test_prepared_asks_are_awaited(self):
        asks = [self.probe(action="answer", argument=number) for number in range(10)]

        async def all_of_them():
            for ask in asks:
                ask.send()
            replies = await asyncio.gather(*(ask.wait_async() for ask in asks))
            self.assertEqual([reply.value for reply in replies], [2 * number + 1 for number in range(10)])
            slow = self.probe(action="work", argument=6 * 10**10)
            slow.send()
            task = asyncio.create_task(slow.wait_async())
            await asyncio.sleep(0)
            with self.assertRaisesRegex(gyre.Error, "in flight"):
                await slow.wait_async()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaisesRegex(gyre.BadArgument, "nothing is in flight"):
                slow.wait()

        asyncio.run(all_of_them())
        self.assertEqual(self.probes.stats()["asks_cancelled"], 1)

    def test_a_dropped_ask_gives_its_call_up(self):
        for _ in range(5000):  # more than there are calls
            self.client.prepare(ECHO, 1, "EchoRequest").send()
        self.assertEqual(self.client.ask(ECHO, 1, "EchoRequest", {"sequence": 2})["sequence"], 2)


if __name__ == "__main__":
    unittest.main()
