"""Tensors of other packages as buffers, on the fake driver: GYRE_LIBRARY is libgyre_fake_cuda.so, which has the C
library's functions and memory of the program on a device. GYRE_ENGINE is fake-gyre-engine."""

import asyncio
import ctypes
import gc
import os
import time
import unittest

import gyre
import numpy
from gyre import _tensor

fake = ctypes.CDLL(os.environ["GYRE_LIBRARY"])
fake.gyre_fake_allocate.restype = ctypes.c_uint64
fake.gyre_fake_allocate.argtypes = [ctypes.c_int32, ctypes.c_uint64]
fake.gyre_fake_free.argtypes = [ctypes.c_uint64]
fake.gyre_fake_waits.restype = fake.gyre_fake_misuse.restype = fake.gyre_fake_context_waits.restype = ctypes.c_uint64
fake.gyre_fake_make_stream.restype = ctypes.c_void_p
fake.gyre_fake_give_store.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float]
fake.gyre_fake_give_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
fake.gyre_fake_give_endless.argtypes = fake.gyre_fake_finish_work.argtypes = [ctypes.c_void_p]
fake.gyre_fake_stream_is_done.argtypes = [ctypes.c_void_p]
MALLOC, POOL = 0, 1  # FakeDriver::ProgramMemory
ADD = "gyre::actors::VectorAdd"

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_set_name = ctypes.pythonapi.PyCapsule_SetName
_capsule_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Memory:
    """Memory of the program, freed when nobody uses it. The fake device's memory is the host's."""

    live = 0

    def __init__(self, values, kind=MALLOC):
        values = numpy.ascontiguousarray(values)
        self.address = fake.gyre_fake_allocate(kind, max(values.nbytes, 1))
        ctypes.memmove(self.address, values.ctypes.data, values.nbytes)
        Memory.live += 1

    def __del__(self):
        fake.gyre_fake_free(self.address)
        Memory.live -= 1


class CudaArray:
    """What Numba and CuPy have."""

    def __init__(self, values, read_only=False, stream=None, kind=MALLOC, strides=None, typestr=None):
        values = numpy.asarray(values)
        self.memory, self.shape, self.dtype = Memory(values, kind), values.shape, values.dtype
        self.__cuda_array_interface__ = {
            "shape": values.shape, "typestr": typestr or values.dtype.str, "data": (self.memory.address, read_only),
            "strides": strides, "version": 3, "stream": stream,
        }

    def values(self):
        count = int(numpy.prod(self.shape))
        there = (ctypes.c_char * (count * self.dtype.itemsize)).from_address(self.memory.address)
        return numpy.frombuffer(there, self.dtype).reshape(self.shape).copy()


class Tensor(CudaArray):
    """What PyTorch has; `versioned`: of DLPack 1.0."""

    def __init__(self, values, device=2, versioned=True, read_only=False, strides=None, code=None, **more):
        super().__init__(values, **more)
        del self.__cuda_array_interface__
        self.device, self.versioned, self.asked_streams = device, versioned, []
        self.managed = _tensor._DLManagedTensorVersioned(major=1, minor=0, flags=int(read_only))
        there = self.managed.tensor
        there.data, there.device_type, there.ndim = self.memory.address, device, len(self.shape)
        there.code = {"i": 0, "u": 1, "f": 2, "c": 5}[self.dtype.kind] if code is None else code
        there.bits, there.lanes = self.dtype.itemsize * 8, 1
        self.lengths = (ctypes.c_int64 * len(self.shape))(*self.shape)
        there.shape = self.lengths
        if strides is not None:
            self.steps = (ctypes.c_int64 * len(strides))(*strides)
            there.strides = self.steps

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, *, stream=None, **more):
        self.asked_streams.append(stream)
        if not self.versioned:
            if more:
                raise TypeError("an old producer knows no max_version")
            return _capsule_new(ctypes.addressof(self.managed.tensor), b"dltensor", None)
        return _capsule_new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


class JaxArray(Tensor):
    pass


JaxArray.__module__ = "jaxlib.xla_extension"


class Consumer:
    """What a package makes of a DLPack capsule: it calls the deleter once it needs the memory no more."""

    def __init__(self, exporter, **asked):
        self.capsule = exporter.__dlpack__(stream=1, **asked)
        self.versioned = bool(_tensor._capsule_is_valid(self.capsule, b"dltensor_versioned"))
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self.managed = _tensor._capsule_pointer(self.capsule, name)
        self._used = b"used_" + name  # the capsule keeps the pointer
        _capsule_set_name(self.capsule, self._used)
        kind = _tensor._DLManagedTensorVersioned if self.versioned else _tensor._DLTensor
        self.content = kind.from_address(self.managed)
        self.tensor = self.content.tensor if self.versioned else self.content

    def values(self, dtype):
        count = self.tensor.shape[0] * numpy.dtype(dtype).itemsize
        return numpy.frombuffer((ctypes.c_char * count).from_address(self.tensor.data), dtype)

    def delete(self):
        at = self.managed + (16 if self.versioned else 56)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.c_void_p.from_address(at).value)(self.managed)


def within_a_minute(holds):
    until = time.monotonic() + 60
    while not holds():
        if time.monotonic() > until:
            return False
        gc.collect()
        time.sleep(0.001)
    return True


class Tensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fake.gyre_fake_begin()
        cls.runtime = gyre.launch(engine="cuda", isolation=os.environ["GYRE_TEST_ISOLATION"], slots=8)

    @classmethod
    def tearDownClass(cls):
        cls.runtime.terminate()
        stats = cls.runtime.stats()
        assert stats["imported_in_use"] == 0 and stats["imported_freed"] == 0, stats
        cls.runtime.close()
        assert fake.gyre_fake_misuse() == 0

    def add(self, a, b, result):
        request = {"length": len(result), "aBuffer": a, "bBuffer": b, "resultBuffer": result}
        return self.runtime.client().ask(ADD, 0, "VectorAddRequest", request)

    def test_a_tensor_is_changed_in_place_and_kept_until_its_buffer_is_closed(self):
        ones = numpy.arange(60, dtype="float32").reshape(3, 4, 5)
        for make in (Tensor, lambda values: Tensor(values, versioned=False),
                     lambda values: Tensor(values, strides=[20, 5, 1]), CudaArray):
            tensor = make(ones)
            buffer = self.runtime.import_tensor(tensor)
            self.assertEqual((len(buffer), buffer.dtype, buffer.memory, buffer.read_only),
                             (60, numpy.float32, "imported", False))
            self.add(buffer, buffer, buffer)
            numpy.testing.assert_array_equal(tensor.values(), 2 * ones)
            buffer.write([7], 59)
            self.assertEqual(tensor.values()[2, 3, 4], 7)
            self.assertEqual(buffer.read(offset=58)[0], 116)
            self.assertEqual(self.runtime.stats()["imported_in_use"], 1)
            del tensor
            gc.collect()
            self.assertEqual(Memory.live, 1)
            buffer.close()
            self.assertTrue(within_a_minute(lambda: Memory.live == 0))

    def test_the_producers_stream_is_waited_for(self):
        tensor = Tensor(numpy.zeros(3, "int32"))
        waits = fake.gyre_fake_waits()
        self.runtime.import_tensor(tensor).close()
        self.assertEqual(tensor.asked_streams, [1])  # the producer orders the default stream behind its own
        self.assertEqual(fake.gyre_fake_waits(), waits + 1)
        self.runtime.import_tensor(CudaArray(numpy.zeros(3), stream=2)).close()
        self.assertEqual(fake.gyre_fake_waits(), waits + 2)
        self.runtime.import_tensor(CudaArray(numpy.zeros(3))).close()
        self.assertEqual(fake.gyre_fake_waits(), waits + 2)

    def test_what_is_immutable_is_read_only(self):
        values = numpy.arange(10, dtype="float32")
        result = self.runtime.buffer(("float32", 10))
        for tensor in (JaxArray(values, versioned=False), Tensor(values, read_only=True), CudaArray(values, read_only=True)):
            with self.assertRaisesRegex(gyre.BadArgument, r"of shape \(10,\) and float32: it is immutable"):
                self.runtime.import_tensor(tensor, read_only=False)
            buffer = self.runtime.import_tensor(tensor)
            self.assertTrue(buffer.read_only)
            self.add(buffer, buffer, result)
            numpy.testing.assert_array_equal(result.read(), 2 * values)
            with self.assertRaisesRegex(gyre.Error, "read-only buffer") as raised:
                self.add(result, result, buffer)
            self.assertEqual(raised.exception.name, "bad_buffer")
            with self.assertRaisesRegex(gyre.Error, "it is read-only"):
                buffer.write(values)
            numpy.testing.assert_array_equal(tensor.values(), values)
        self.assertTrue(self.runtime.import_tensor(Tensor(values), read_only=True).read_only)

    def test_what_cannot_be_imported_is_named(self):
        values = numpy.zeros((4, 6), "float32")
        named = r"of shape \(4, 6\) and float32: "
        for tensor, said in (
            (Tensor(values, device=1), named + "it is on the host"),
            (Tensor(values, device=3), named + "it is in page-locked host memory"),
            (Tensor(values, device=13), named + "it is in managed memory"),
            (Tensor(values, device=8), named + "it is on a device of DLPack's type 8"),
            (Tensor(values, strides=[1, 4]), named + r"its strides are \(1, 4\)"),
            (Tensor(values, strides=[12, 2]), named + "its strides are"),
            (CudaArray(values, strides=(4, 16)), named + "its strides are"),
            (Tensor(values.astype("float16")), r"and float16: it has elements of float16, and a buffer has one of int8"),
            (Tensor(values.astype("int16"), code=4), "it has elements of bfloat16"),
            (CudaArray(values, typestr=">f4"), named + "it has elements of >f4"),
            (Tensor(numpy.zeros((0, 6), "float32")), r"of shape \(0, 6\) and float32: it has no elements"),
            (CudaArray(numpy.zeros(0, "float32")), r"of shape \(0,\) and float32: it has no elements"),
            (numpy.zeros(3), r"importing a ndarray of shape \(3,\) and float64: it is on the host"),
            ([1, 2, 3], "importing a list: it has neither __dlpack__ nor __cuda_array_interface__"),
        ):
            with self.subTest(said), self.assertRaisesRegex(gyre.BadArgument, said):
                self.runtime.import_tensor(tensor)
        if os.environ["GYRE_TEST_ISOLATION"] == "process":
            with self.assertRaisesRegex(gyre.Error, named + "importing 96 bytes at 0x.*stream-ordered pool"):
                self.runtime.import_tensor(Tensor(values, kind=POOL))
        del tensor
        self.assertTrue(within_a_minute(lambda: Memory.live == 0))

    def test_a_program_without_a_context_is_told_to_make_one(self):
        if os.environ["GYRE_TEST_ISOLATION"] == "process":
            buffer = self.runtime.buffer(("float32", 10))
            self.assertEqual(buffer.__dlpack_device__(), (2, 0))
            for use in (buffer.__dlpack__, lambda: buffer.__cuda_array_interface__):
                with self.assertRaisesRegex(gyre.Error, r"no CUDA context on device GPU-.*torch.zeros"):
                    use()
            fake.gyre_fake_make_context()
            Consumer(buffer).delete()

    def test_buffers_are_seen_by_other_packages_without_a_copy(self):
        fake.gyre_fake_make_context()
        for dtype, code, bits in (("float32", 2, 32), ("uint8", 1, 8), ("int64", 0, 64), ("float64", 2, 64)):
            buffer = self.runtime.buffer(numpy.arange(50, dtype=dtype))
            for asked, versioned in ({}, False), ({"max_version": (1, 1)}, True), ({"max_version": (0, 8)}, False):
                consumer = Consumer(buffer, **asked)
                there = consumer.tensor
                self.assertEqual(consumer.versioned, versioned)
                if versioned:
                    self.assertEqual((consumer.content.major, consumer.content.flags), (1, 0))
                self.assertEqual((there.device_type, there.device_id, there.ndim, there.shape[0], there.strides[0]),
                                 (2, 0, 1, 50, 1))
                self.assertEqual((there.code, there.bits, there.lanes, there.byte_offset), (code, bits, 1, 0))
                numpy.testing.assert_array_equal(consumer.values(dtype), numpy.arange(50))
                consumer.values(dtype)[:] = 3
                numpy.testing.assert_array_equal(buffer.read(), numpy.full(50, 3, dtype))
                buffer.write(numpy.arange(50, dtype=dtype))
                consumer.delete()
            about = buffer.__cuda_array_interface__
            self.assertEqual((about["shape"], about["typestr"], about["version"], about["stream"]),
                             ((50,), buffer.dtype.str, 3, None))
            self.assertEqual(about["data"], (there.data, False))
            self.assertFalse(hasattr(buffer, "__array_interface__"))
            buffer.close()

    def test_memory_stays_until_the_last_consumer_lets_go(self):
        def in_use():
            return self.runtime.stats()["buffers_in_use"][0]

        fake.gyre_fake_make_context()
        gc.collect()
        self.assertTrue(within_a_minute(lambda: in_use() == 0))  # other tests' exports are released
        buffer = self.runtime.buffer(numpy.full(100, 5, "float32"))
        first, second = Consumer(buffer), Consumer(buffer, max_version=(1, 0))
        unused = buffer.__dlpack__()  # nobody takes it
        named = self.runtime.buffer(numpy.full(100, 6, "float32"))
        address = named.__cuda_array_interface__["data"][0]
        buffer.close()
        named.close()
        waits = fake.gyre_fake_context_waits()
        del unused
        first.delete()
        other = self.runtime.buffer(("float32", 100))
        self.add(other, other, other)
        self.assertEqual(list(second.values("float32")), [5] * 100)
        self.assertEqual(list((ctypes.c_float * 100).from_address(address)), [6] * 100)
        self.assertGreater(in_use(), 0)
        other.close()
        second.delete()
        self.assertTrue(within_a_minute(lambda: fake.gyre_fake_context_waits() == waits + 1))
        del named
        gc.collect()
        self.assertTrue(within_a_minute(lambda: in_use() == 0))

    def test_an_ask_after_a_stream_sees_its_work(self):
        fake.gyre_fake_make_context()
        buffer = self.runtime.buffer(("float32", 10))
        address = buffer.__cuda_array_interface__["data"][0]
        client = self.runtime.client()
        request = {"length": 10, "aBuffer": buffer, "bBuffer": buffer, "resultBuffer": buffer}
        named = fake.gyre_fake_make_stream()

        class Torch:
            cuda_stream = named

        class CuPy:
            ptr = named

        class Numba:
            handle = ctypes.c_void_p(named)

        class Protocol:
            def __cuda_stream__(self):
                return 0, named

        async def asked(stream):
            return await client.ask_async(ADD, 0, "VectorAddRequest", request, after=stream)

        for stream in (named, Torch, CuPy, Numba, Protocol()):
            for ask in (lambda stream: client.ask(ADD, 0, "VectorAddRequest", request, after=stream),
                        lambda stream: client.send(ADD, 0, "VectorAddRequest", request, after=stream).wait(),
                        lambda stream: asyncio.run(asked(stream))):
                fake.gyre_fake_give_store(named, address, 21)
                ask(stream)
                self.assertEqual(buffer.read()[0], 42)
        client.tell(ADD, 0, "VectorAddRequest", request, after=0)  # the default stream
        fake.gyre_fake_give_endless(named)
        with self.assertRaisesRegex(gyre.TimedOut, "it is not done after 1 ms"):
            client.ask(ADD, 0, "VectorAddRequest", request, after=named, timeout=0.001)
        fake.gyre_fake_finish_work(named)  # else no export could be released any more
        for wrong in ("stream", None, -1, True):
            if wrong is not None:
                with self.assertRaisesRegex(gyre.BadArgument, "give a stream of PyTorch, CuPy or Numba"):
                    client.ask(ADD, 0, "VectorAddRequest", request, after=wrong)
        with self.assertRaisesRegex(gyre.Error, "waiting for the work of stream 0x77: CUDA_ERROR_INVALID_HANDLE"):
            client.ask(ADD, 0, "VectorAddRequest", request, after=0x77)

    def test_a_stream_waits_for_a_reply(self):
        fake.gyre_fake_make_context()
        buffer = self.runtime.buffer(numpy.full(10, 4, "float32"))
        address = buffer.__cuda_array_interface__["data"][0]
        client, stream = self.runtime.client(), fake.gyre_fake_make_stream()
        request = {"length": 10, "aBuffer": buffer, "bBuffer": buffer, "resultBuffer": buffer}
        found = (ctypes.c_float * 1)()
        pending = client.send(ADD, 0, "VectorAddRequest", request).wait_on(stream)
        fake.gyre_fake_give_copy(stream, ctypes.addressof(found), address)
        self.assertTrue(within_a_minute(lambda: fake.gyre_fake_stream_is_done(stream)))
        self.assertEqual(found[0], 8)
        self.assertTrue(within_a_minute(pending.done))
        self.assertEqual(pending.wait()["processed"], 10)
        self.assertFalse(pending.cancel())
        client.send(ADD, 0, "VectorAddRequest", request).wait_on(stream)  # dropped
        fake.gyre_fake_give_copy(stream, ctypes.addressof(found), address)
        self.assertTrue(within_a_minute(lambda: fake.gyre_fake_stream_is_done(stream)))
        self.assertEqual(found[0], 16)
        refused = client.send(ADD, 0, "VectorAddRequest", dict(request, length=11)).wait_on(stream)
        self.assertTrue(within_a_minute(lambda: fake.gyre_fake_stream_is_done(stream)))
        with self.assertRaisesRegex(gyre.Error, "buffer"):
            refused.wait()

    def test_an_export_is_no_copy_and_of_no_other_device(self):
        buffer = self.runtime.buffer(("float32", 10))
        with self.assertRaisesRegex(BufferError, "it is not copied"):
            buffer.__dlpack__(copy=True)
        with self.assertRaisesRegex(BufferError, r"on DLPack's device \(2, 0\), and \(1, 0\) is asked for"):
            buffer.__dlpack__(dl_device=(1, 0))
        pinned = self.runtime.buffer(numpy.arange(10, dtype="float32"), "pinned")
        shared = numpy.from_dlpack(pinned)
        pinned.write([7], 3)
        self.assertEqual(shared[3], 7)
        imported = self.runtime.import_tensor(Tensor(numpy.zeros(3, "float32")))
        with self.assertRaisesRegex(gyre.Error, "its memory is imported; use what it was imported from"):
            imported.__dlpack__()


if __name__ == "__main__":
    unittest.main()
