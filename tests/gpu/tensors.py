#!/usr/bin/env python3
"""Tensors of PyTorch, CuPy and JAX, and memory of the CUDA driver, as Gyre's buffers on a GPU, and Gyre's buffers as
theirs, without a copy.

    tensors.py [--isolation process|in_process] [--only driver,torch,cupy,jax]

Shows by values changed on one side and seen on the other that nothing is copied. Packages that are not installed are
skipped; the driver's memory needs none. Needs $GYRE_LIBRARY, the path of libgyre.so, and NumPy. Exit 77 where nothing
could be run.
"""
import argparse
import contextlib
import ctypes
import gc
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime/python"))
import gyre  # noqa: E402

ADD = "gyre::actors::VectorAdd"
LIMIT_S = 120


def check(holds, what):
    print(f"  {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        check.failures += 1


check.failures = 0


@contextlib.contextmanager
def refused(said, what):
    try:
        yield
    except gyre.Error as error:
        check(said in str(error), f"{what}: {error}")
    else:
        check(False, f"{what} was taken")


def ask(runtime, a, b, result):
    request = {"length": len(result), "aBuffer": a, "bBuffer": b, "resultBuffer": result}
    return runtime.client().ask(ADD, 0, "VectorAddRequest", request)


def soon(holds):
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        gc.collect()
        time.sleep(0.001)
    return holds()


def nothing_is_imported(runtime):
    def holds():
        stats = runtime.stats()
        return stats["imported_in_use"] == stats["imported_freed"] == 0

    check(soon(holds), "the ledger has no imported buffer left")


def nothing_is_exported(runtime):
    gc.collect()
    check(soon(lambda: runtime.stats()["buffers_in_use"][0] == 0), "the ledger has no device buffer left")


# ---- Memory of the driver


class AllocationProp(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8), ("spare", ctypes.c_ubyte * 64)]


class Cuda:
    """The driver's functions, in the primary context of device 0."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.context, self.device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def malloc(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def malloc_async(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(size), None)
        self.call("cuStreamSynchronize", None)
        return address.value

    def managed(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(size), 1)
        return address.value

    def pinned(self, size):
        address = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), 0)
        return address.value

    def mapped(self, size, handles):
        """By cuMemCreate; `handles`: 1 where another process may map it."""
        size = (size + (2 << 20) - 1) // (2 << 20) * (2 << 20)
        prop = AllocationProp(type=1, handles=handles, location=1, id=0)
        handle, address = ctypes.c_uint64(), ctypes.c_uint64()
        self.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop), ctypes.c_uint64(0))
        self.call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0),
                  ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.call("cuMemMap", address, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        access = (ctypes.c_int * 3)(1, 0, 3)
        self.call("cuMemSetAccess", address, ctypes.c_size_t(size), access, ctypes.c_size_t(1))
        return address.value

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address, values):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(values.ctypes.data),
                  ctypes.c_size_t(values.nbytes))
        self.call("cuStreamSynchronize", None)  # small copies of pageable memory return before they are done

    def read(self, address, like):
        values = numpy.empty_like(like)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(address),
                  ctypes.c_size_t(values.nbytes))
        return values


class Array:
    """Memory of the driver, as Numba has it."""

    def __init__(self, address, like, read_only=False):
        self.shape, self.dtype = like.shape, like.dtype
        self.__cuda_array_interface__ = {"shape": like.shape, "typestr": like.dtype.str, "version": 3,
                                         "data": (address, read_only), "strides": None, "stream": 1}


def test_driver(runtime, isolation):
    cuda = Cuda()
    values = numpy.arange(100_003, dtype="float32")

    def changed_in_place(address, name, offset=0):
        cuda.write(address + offset, values)
        buffer = runtime.import_tensor(Array(address + offset, values))
        ask(runtime, buffer, buffer, buffer)
        check(numpy.array_equal(cuda.read(address + offset, values), 2 * values), f"{name}: the program sees the sums")
        cuda.write(address + offset, values[::-1].copy())
        check(numpy.array_equal(buffer.read(), values[::-1]), f"{name}: the engine sees what the program wrote")
        buffer.close()

    changed_in_place(cuda.malloc(values.nbytes), "cuMemAlloc")
    changed_in_place(cuda.malloc(values.nbytes + 4), "cuMemAlloc, not at a multiple of 16", 4)
    changed_in_place(cuda.mapped(values.nbytes, 1), "cuMemCreate with a descriptor")
    if isolation == "in_process":
        changed_in_place(cuda.mapped(values.nbytes, 0), "cuMemCreate without one")
        changed_in_place(cuda.malloc_async(values.nbytes), "a stream-ordered pool")
    else:
        for address, said in ((cuda.mapped(values.nbytes, 0), "without a handle type"),
                              (cuda.malloc_async(values.nbytes), "stream-ordered pool")):
            with refused(said, "memory that no other process can map"):
                runtime.import_tensor(Array(address, values))
    for address, said in ((cuda.managed(values.nbytes), "managed memory"),
                          (cuda.pinned(values.nbytes), "page-locked host memory"),
                          (values.ctypes.data, "ordinary host memory")):
        with refused(said, "no device memory"):
            runtime.import_tensor(Array(address, values))
    # Many allocations, each freed as soon as its buffer is.
    began = time.perf_counter()
    for _ in range(200):
        address = cuda.malloc(values.nbytes)
        cuda.write(address, values)
        with runtime.import_tensor(Array(address, values)) as buffer:
            ask(runtime, buffer, buffer, buffer)
        check.failures += not numpy.array_equal(cuda.read(address, values), 2 * values)
        cuda.free(address)
    print(f"  200 times allocated, imported, asked, freed: {(time.perf_counter() - began) * 5:.2f} ms each")
    nothing_is_imported(runtime)
    # The other direction.
    for count in (1, 1000, 3_000_001):
        buffer = runtime.buffer(numpy.arange(count, dtype="float32"))
        address = buffer.__cuda_array_interface__["data"][0]
        like = numpy.arange(count, dtype="float32")
        check(numpy.array_equal(cuda.read(address, like), like), f"the program sees a buffer of {count} elements")
        cuda.write(address, like + 1)
        ask(runtime, buffer, buffer, buffer)
        check(numpy.array_equal(cuda.read(address, like), 2 * (like + 1)), "the workers see what the program wrote")
        del buffer
    began = time.perf_counter()
    for _ in range(200):
        runtime.buffer(("float32", 1000)).__cuda_array_interface__
    print(f"  200 times allocated, exported, freed: {(time.perf_counter() - began) * 5:.2f} ms each")
    nothing_is_exported(runtime)


# ---- Packages


def test_torch(runtime, isolation):
    import torch

    x = torch.arange(100_000, dtype=torch.float32, device="cuda")
    buffer = runtime.import_tensor(x)
    ask(runtime, buffer, buffer, buffer)
    check(bool((x == 2 * torch.arange(100_000, dtype=torch.float32, device="cuda")).all()), "PyTorch sees the sums")
    x.fill_(3)
    torch.cuda.current_stream().synchronize()
    check(bool((buffer.read() == 3).all()), "Gyre sees what PyTorch wrote")
    part = runtime.import_tensor(x[1001:2002])
    ask(runtime, part, part, part)
    check(float(x.sum().item()) == 300_000 + 3 * 1001, "a slice is changed, and nothing beside it")
    # Work of another stream is done before the import returns.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        y = torch.full((1000,), 7.0, device="cuda")
        late = runtime.import_tensor(y)
    check(bool((late.read() == 7).all()), "an import waits for the producer's stream")
    frozen = runtime.import_tensor(y, read_only=True)
    with refused("read-only", "writing a tensor that was imported as read-only"):
        ask(runtime, frozen, frozen, frozen)
    frozen.close()
    for tensor, said in ((torch.zeros(10), "on the host"), (torch.zeros(10).pin_memory(), "host"),
                         (torch.zeros(4, 6, device="cuda").T, "strides"), (torch.zeros(0, device="cuda"), "no elements"),
                         (torch.zeros(4, dtype=torch.float16, device="cuda"), "float16"),
                         (torch.zeros(4, dtype=torch.bfloat16, device="cuda"), "bfloat16")):
        with refused(said, "PyTorch"):
            runtime.import_tensor(tensor)
    halves = torch.zeros(4, dtype=torch.bfloat16, device="cuda")
    runtime.import_tensor(halves.view(torch.int16)).close()
    check(True, "bfloat16 is imported as int16")
    # Freed while asks are in flight: PyTorch may use the memory again only once the workers are past them.
    client, wrong = runtime.client(), 0
    for _ in range(200):
        z = torch.ones(50_000, device="cuda")
        b = runtime.import_tensor(z)
        request = {"length": len(b), "aBuffer": b, "bBuffer": b, "resultBuffer": b}
        client.tell(ADD, 0, "VectorAddRequest", request)
        b.close()
        del z
        other = torch.zeros(50_000, device="cuda")
        wrong += bool((other != 0).any())
    check(wrong == 0, "200 tensors freed while asks are in flight disturb no other")
    began = time.perf_counter()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    check(time.perf_counter() - began < 5, "empty_cache and synchronize wait for no worker")
    for one in (buffer, part, late):
        one.close()
    nothing_is_imported(runtime)
    ordered_with_torch(runtime)
    exported_to_torch(runtime, isolation)


def ordered_with_torch(runtime):
    import torch

    client, count = runtime.client(), 100_000
    buffer = runtime.buffer(("float32", count))
    x = torch.from_dlpack(buffer)
    request = {"length": count, "aBuffer": buffer, "bBuffer": buffer, "resultBuffer": buffer}
    # A graph that waits for one ask: nothing of it begins before, and later launches do not wait. It comes first: the
    # first wait registers memory, here while a stream is captured.
    x.fill_(1)
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        pending = client.send(ADD, 0, "VectorAddRequest", request)
        pending.wait_on(torch.cuda.current_stream())
        y.copy_(x)
    graph.replay()
    torch.cuda.synchronize()
    pending.wait()
    check(bool((y == 2).all()), "a captured graph waits for a reply")
    x.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    check(bool((y == 5).all()), "and no more at its next launch")
    other = torch.cuda.Stream()
    for name, stream in (("the current stream", torch.cuda.current_stream()), ("another stream", other)):
        right = True
        for n in range(50):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(2_000_000)
                x.fill_(n)
            pending = client.send(ADD, 0, "VectorAddRequest", request, after=stream).wait_on(stream)
            with torch.cuda.stream(stream):
                total = (x + 1).sum(dtype=torch.float64).item()  # reads it in the stream
            right = right and total == (2.0 * n + 1) * count and pending.wait() is not None
        check(right, f"50 asks after {name}, which then waited for each: no synchronisation by the program")
    with torch.cuda.stream(other):
        torch.cuda._sleep(2_000_000_000)
    with refused("it is not done after", "a stream that is not done in time"):
        client.ask(ADD, 0, "VectorAddRequest", request, after=other, timeout=0.01)
    other.synchronize()
    # A refused handle: the error reply lets the stream go on. So does a reply that nobody wants.
    bad = client.send(ADD, 0, "VectorAddRequest", dict(request, length=count + 1)).wait_on(other)
    client.send(ADD, 0, "VectorAddRequest", request).wait_on(other)
    other.synchronize()
    check(bad.done() or soon(bad.done), "streams go on after an error and after a dropped reply")
    began = time.perf_counter()
    for _ in range(2000):
        client.send(ADD, 0, "VectorAddRequest", {"length": 1, "aBuffer": buffer, "bBuffer": buffer,
                                                 "resultBuffer": buffer}, after=other).wait_on(other)
    other.synchronize()
    print(f"  2000 times after a stream, and the stream behind the reply: {(time.perf_counter() - began) * 500:.1f} us each")
    del x, y, buffer, request
    nothing_is_exported(runtime)


def exported_to_torch(runtime, isolation):
    import torch

    buffer = runtime.buffer(numpy.arange(100_000, dtype="float32"))
    x = torch.from_dlpack(buffer)
    expected = torch.arange(100_000, dtype=torch.float32, device="cuda")
    check(x.is_cuda and bool((x == expected).all()), "PyTorch sees a Gyre buffer")
    ask(runtime, buffer, buffer, buffer)
    check(bool((x == 2 * expected).all()), "PyTorch sees the sums in it")
    x.fill_(3)
    torch.cuda.current_stream().synchronize()
    check(bool((buffer.read() == 3).all()), "Gyre sees what PyTorch wrote there")
    check(bool((torch.as_tensor(buffer, device="cuda") == 3).all()), "PyTorch sees it by __cuda_array_interface__ too")
    # Closed, with work on it under way that still reads it when the tensor goes.
    y = torch.empty_like(x)
    torch.cuda._sleep(200_000_000)
    y.copy_(x)
    buffer.close()
    del x, buffer
    gc.collect()
    other = runtime.buffer(("float32", 100_000))
    ask(runtime, other, other, other)
    check(bool((y == 3).all()), "work that was under way when the last tensor went had its memory")
    kept = torch.from_dlpack(runtime.buffer(numpy.full(1000, 7, "float32")))
    gc.collect()
    check(bool((kept * 2 == 14).all()), "a tensor keeps the memory of a buffer that is gone")
    del kept, other
    nothing_is_exported(runtime)
    if isolation == "process":
        # Last: the engine process is killed.
        buffer = runtime.buffer(numpy.full(1000, 5, "float32"))
        x = torch.from_dlpack(buffer)
        for child in pathlib.Path(f"/proc/{os.getpid()}/task").glob("*/children"):
            for pid in child.read_text().split():
                if "gyre-engine" in pathlib.Path(f"/proc/{pid}/comm").read_text():
                    os.kill(int(pid), signal.SIGKILL)
        soon(lambda: runtime.info()["state"] == "failed")
        x += 1
        check(bool((x == 6).all()), "memory of an engine process that was killed stays PyTorch's")
        runtime.relaunch()


def test_cupy(runtime, isolation):
    import cupy

    x = cupy.arange(10_000, dtype=cupy.float64)
    y = cupy.arange(10_000, dtype=cupy.float32)
    doubles, floats = runtime.import_tensor(x), runtime.import_tensor(y)
    ask(runtime, floats, floats, floats)
    check(bool((y == 2 * cupy.arange(10_000, dtype=cupy.float32)).all()), "CuPy sees the sums")
    x[:] = 5
    cupy.cuda.Stream.null.synchronize()
    check(bool((doubles.read() == 5).all()), "Gyre sees what CuPy wrote")
    with refused("strides", "CuPy, not contiguous"):
        runtime.import_tensor(cupy.zeros((4, 6), cupy.float32)[:, :3])
    if isolation == "process":
        with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc), refused("stream-ordered pool", "CuPy, a pool"):
            runtime.import_tensor(cupy.zeros(1000, cupy.float32))
    doubles.close()
    floats.close()
    nothing_is_imported(runtime)
    for take in (cupy.from_dlpack, cupy.asarray):
        buffer = runtime.buffer(numpy.arange(10_000, dtype="float32"))
        y = take(buffer)
        ask(runtime, buffer, buffer, buffer)
        check(bool((y == 2 * cupy.arange(10_000, dtype=cupy.float32)).all()), f"CuPy sees a Gyre buffer by {take.__name__}")
        y[:] = 4
        cupy.cuda.Stream.null.synchronize()
        check(bool((buffer.read() == 4).all()), "Gyre sees what CuPy wrote there")
        del y, buffer
    nothing_is_exported(runtime)


def test_jax(runtime, isolation):
    import jax
    import jax.numpy as jnp

    if jax.devices()[0].platform != "gpu":
        print("  skipped: JAX has no GPU here")
        return
    x = jnp.arange(10_000, dtype=jnp.float32)
    buffer = runtime.import_tensor(x)
    check(buffer.read_only, "a JAX array is read-only")
    result = runtime.buffer(("float32", 10_000))
    ask(runtime, buffer, buffer, result)
    check(numpy.array_equal(result.read(), 2 * numpy.arange(10_000, dtype="float32")), "an actor reads a JAX array")
    with refused("read-only", "writing a JAX array"):
        ask(runtime, result, result, buffer)
    with refused("immutable", "importing a JAX array to write it"):
        runtime.import_tensor(x, read_only=False)
    check(bool((x == jnp.arange(10_000, dtype=jnp.float32)).all()), "the JAX array is as it was")
    buffer.close()
    nothing_is_imported(runtime)
    y = jax.dlpack.from_dlpack(result)
    check(bool((y == 2 * jnp.arange(10_000, dtype=jnp.float32)).all()), "JAX sees a Gyre buffer")
    result.write(numpy.full(10_000, 8, "float32"))
    check(numpy.array_equal(numpy.asarray(y), numpy.full(10_000, 8)), "JAX sees what Gyre wrote there")
    del y, result
    nothing_is_exported(runtime)


TESTS = {"driver": test_driver, "torch": test_torch, "cupy": test_cupy, "jax": test_jax}


def run(name, isolation):
    """In a process of its own: each package has its own way with CUDA."""
    print(f"{name}, {isolation}:", flush=True)
    runtime = gyre.launch(engine="cuda", isolation=isolation)
    TESTS[name](runtime, isolation)
    ended = runtime.terminate()
    check(ended["balanced"], "the books balance")
    runtime.close()
    return 1 if check.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isolation", choices=["process", "in_process"])
    parser.add_argument("--only", default=",".join(TESTS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        signal.alarm(LIMIT_S)
        return run(arguments.one, arguments.isolation)
    codes = []
    for name in arguments.only.split(","):
        if name != "driver" and importlib.util.find_spec(name) is None:
            print(f"{name}: skipped, not installed")
            continue
        for isolation in [arguments.isolation] if arguments.isolation else ["process", "in_process"]:
            environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
            codes.append(subprocess.run([sys.executable, __file__, "--one", name, "--isolation", isolation],
                                        env=environment).returncode)
    return 77 if not codes else max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
