#!/usr/bin/env python3
"""PyTorch and Gyre in one program on one GPU: nothing that PyTorch calls waits for Gyre's workers.

    beside_torch.py --out FILE [--order alone|torch-first|gyre-first] [options]
    beside_torch.py --compare FILE.json …
    beside_torch.py --pairs N [options]

The first form runs PyTorch's first uses, a captured graph and training, with threads that ask all the time, and writes
how long each step took. The second fails where a step took 100 ms longer than in the slowest of the files of order
alone, a reply was wrong or missing, or the books do not balance. The third measures N times the round trip alone, the
training step alone, and both together, and fails where one of them is over 1.10 times as long together as alone, or
the round trip's p99.9 over 25 µs: medians, promised under MPS of one worker and one thread (--askers 1 --wait spin).

The threads are C++ (tests/gpu/askers.cpp), or Python's with --python-threads.
Needs $GYRE_LIBRARY and $GYRE_ASKERS, the paths of libgyre.so and libgyre_askers.so, and PyTorch: exit 77 without it.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime/python"))
LIMIT_S = 60  # a step that takes longer has blocked


class Report(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("asked", "wrong", "failed")] + [
        (n, ctypes.c_double) for n in ("p50_us", "p99_us", "p999_us", "max_us")
    ]


class CppAskers:
    """Threads of C++ that ask Echo and check every reply."""

    library = None

    def __init__(self, runtime, count):
        if CppAskers.library is None:
            CppAskers.library = ctypes.CDLL(os.environ["GYRE_ASKERS"])
            self.library.askers_start.restype = ctypes.c_void_p
            self.library.askers_start.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
            self.library.askers_stop.argtypes = [ctypes.c_void_p, ctypes.POINTER(Report)]
        self.handle = self.library.askers_start(runtime._handle, count)

    def stop(self):
        report = Report()
        self.library.askers_stop(self.handle, ctypes.byref(report))
        return {name: getattr(report, name) for name, _ in Report._fields_}


class PythonAskers:
    """Threads of Python that do likewise."""

    def __init__(self, runtime, count):
        self.ending = False
        self.wrong = self.failed = 0
        self.times_us = [[] for _ in range(count)]
        self.threads = [threading.Thread(target=self.ask, args=(runtime, n), daemon=True) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def ask(self, runtime, thread):
        import gyre

        client = runtime.client()
        sequence = thread << 40
        while not self.ending:
            sequence += 1
            sent = {"sequence": sequence, "payload": [sequence * 31, sequence]}
            began = time.perf_counter()
            try:
                reply = client.ask("gyre::actors::Echo", thread, "EchoRequest", sent)
                self.wrong += reply["sequence"] != sequence or list(reply["payload"]) != sent["payload"]
            except gyre.Error:
                self.failed += 1
            self.times_us[thread].append((time.perf_counter() - began) * 1e6)

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join()
        times = sorted(time_us for times_us in self.times_us for time_us in times_us)
        found = {"asked": len(times), "wrong": self.wrong, "failed": self.failed}
        for name, part in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999), ("max_us", 1)):
            found[name] = times[min(len(times) - 1, int(part * len(times)))] if times else 0.0
        return found


class Gyre:
    """A runtime, and threads that ask it."""

    def __init__(self, arguments):
        import gyre

        self.arguments = arguments
        began = time.perf_counter()
        self.runtime = gyre.launch(
            engine="cuda", isolation=arguments.isolation, transport=arguments.transport, workers=arguments.workers,
            multiprocessors=arguments.multiprocessors, wait=arguments.wait,
        )
        self.launch_ms = (time.perf_counter() - began) * 1e3

    def start(self):
        askers = PythonAskers if self.arguments.python_threads else CppAskers
        self.askers = askers(self.runtime, self.arguments.askers)

    def stop(self):
        return self.askers.stop()

    def end(self):
        info = self.runtime.info()
        ended = self.runtime.terminate()
        self.runtime.close()
        return {"launch_ms": self.launch_ms, "transport": info["transport"], "failure": info["failure"],
                "balanced": ended["balanced"], "terminate_ms": ended["terminate_ms"]}


class Training:
    """A small model on the GPU."""

    def __init__(self, torch, device):
        nn = torch.nn
        self.torch = torch
        self.model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(device)
        self.optimiser = torch.optim.Adam(self.model.parameters())
        self.x = torch.randn(256, 1024, device=device)
        self.y = torch.randint(0, 10, (256,), device=device)

    def run(self, seconds):
        """Trains for so long, one step at least. Returns the steps' times in milliseconds."""
        steps_ms = []
        until = time.perf_counter() + seconds
        while not steps_ms or time.perf_counter() < until:
            began = time.perf_counter()
            self.optimiser.zero_grad()
            self.torch.nn.functional.cross_entropy(self.model(self.x), self.y).backward()
            self.optimiser.step()
            self.torch.cuda.synchronize()
            steps_ms.append((time.perf_counter() - began) * 1e3)
        return steps_ms


def run(arguments):
    steps = {}

    def step(name, work):
        """Runs `work`, and notes how long it took. Gives up, and the process with it, where it blocks."""
        done = []
        thread = threading.Thread(target=lambda: (work(), done.append(True)), daemon=True)
        began = time.perf_counter()
        thread.start()
        thread.join(LIMIT_S)
        steps[name] = (time.perf_counter() - began) * 1e3
        if not done:
            steps[name + " blocked"] = True
            write({})
            os._exit(1)

    def write(gyre_found):
        document = {"order": arguments.order, "isolation": arguments.isolation, "workers": arguments.workers,
                    "askers": ("Python" if arguments.python_threads else "C++") + f" {arguments.askers}",
                    "mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ, "steps_ms": steps, "gyre": gyre_found}
        pathlib.Path(arguments.out).write_text(json.dumps(document, indent=1))

    made = {}

    def launch():
        made["gyre"] = Gyre(arguments)
        made["gyre"].start()

    if arguments.order == "gyre-first":
        step("launch gyre", launch)
    import torch

    # An optimiser imports modules for seconds at its first step, which has nothing to do with a GPU. So does Triton.
    import triton.language  # noqa: F401
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    torch.optim.Adam([weight]).step()
    device = torch.device("cuda")
    step("first tensor", lambda: torch.zeros(1024, device=device).sum().item())
    if arguments.order == "torch-first":
        step("launch gyre", launch)
    a = torch.randn(2048, 2048, device=device)
    torch.cuda.current_stream().synchronize()
    step("cuBLAS float32", lambda: (a @ a).sum().item())
    half = a.bfloat16()
    step("cuBLAS bfloat16", lambda: (half @ half).float().sum().item())
    image = torch.randn(8, 16, 64, 64, device=device)
    convolution = torch.nn.Conv2d(16, 32, 3).to(device)
    step("cuDNN", lambda: convolution(image).sum().item())

    def triton_kernel():
        source = (
            "import triton, triton.language as tl\n"
            "@triton.jit\n"
            "def doubled(x, y, n, B: tl.constexpr):\n"
            "  i = tl.program_id(0) * B + tl.arange(0, B)\n"
            "  tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)\n"
        )
        path = pathlib.Path(arguments.out).with_suffix(".triton.py")
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("doubled_module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x = torch.arange(4096, device=device, dtype=torch.float32)
        y = torch.empty_like(x)
        module.doubled[(4,)](x, y, 4096, B=1024)
        assert torch.equal(y, 2 * x)

    step("Triton", triton_kernel)
    step("empty_cache", torch.cuda.empty_cache)
    step("synchronize", torch.cuda.synchronize)
    step("pinned memory", lambda: torch.randn(1 << 20).pin_memory().to(device, non_blocking=True).sum().item())

    def graph():
        static = torch.randn(512, 512, device=device)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                static @ static
        torch.cuda.current_stream().wait_stream(stream)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            result = static @ static
        for _ in range(10):
            captured.replay()
        torch.cuda.synchronize()
        assert torch.isfinite(result).all()

    step("captured graph", graph)

    def first_train():
        made["training"] = Training(torch, device)
        made["training"].run(0)

    step("first training step", first_train)
    steps["training step p50"] = statistics.median(made["training"].run(arguments.seconds))
    found = {}
    if "gyre" in made:
        found = made["gyre"].stop() | made["gyre"].end()
    step("synchronize after gyre", torch.cuda.synchronize)
    write(found)


def measure_pairs(arguments):
    import torch

    training = Training(torch, torch.device("cuda"))
    training.run(1)
    wrong = 0

    alone, together, step_alone, step_together = [], [], [], []

    def train(steps_ms):
        steps_ms.append(statistics.median(training.run(arguments.seconds)))

    def ask(gyre, replies, meanwhile):
        gyre.start()
        meanwhile()
        replies.append(gyre.stop())

    for number in range(arguments.pairs):
        # What comes first in a pair comes last in the next.
        parts = [lambda gyre: ask(gyre, alone, lambda: time.sleep(arguments.seconds)),
                 lambda gyre: ask(gyre, together, lambda: train(step_together))]
        if number % 2 == 1:
            train(step_alone)
            parts.reverse()
        gyre = Gyre(arguments)
        for part in parts:
            part(gyre)
        ended = gyre.end()
        if number % 2 == 0:
            train(step_alone)
        replies = alone[-1], together[-1]
        wrong += sum(bool(part["wrong"] or part["failed"] or not part["asked"]) for part in replies)
        wrong += (not ended["balanced"]) + bool(ended["failure"])
        print(f"pair {number + 1}: round trip p50 {alone[-1]['p50_us']:.2f} µs alone, {together[-1]['p50_us']:.2f} together; "
              f"p99.9 {alone[-1]['p999_us']:.1f} and {together[-1]['p999_us']:.1f}; training step {step_alone[-1]:.3f} ms "
              f"alone, {step_together[-1]:.3f} together; {ended['transport']}, launch {ended['launch_ms']:.0f} ms", flush=True)

    def median_of(rows, name):
        return statistics.median(row[name] for row in rows)

    def held(name, value, most):
        print(f"{name}: {value:.3f}, {'at most' if value <= most else 'MORE THAN'} {most}")
        return value <= most

    print(f"round trip, medians of {arguments.pairs}: p50 {median_of(alone, 'p50_us'):.2f} µs alone, "
          f"{median_of(together, 'p50_us'):.2f} together; p99.9 {median_of(alone, 'p999_us'):.1f} and "
          f"{median_of(together, 'p999_us'):.1f}; training step {statistics.median(step_alone):.3f} ms and "
          f"{statistics.median(step_together):.3f}")
    print(f"replies: {sum(row['asked'] for row in alone + together)}, {wrong} times wrong, failed or unbalanced")
    good = [
        held("round trip, together / alone", statistics.median(
            both["p50_us"] / one["p50_us"] for both, one in zip(together, alone) if one["asked"]), 1.10),
        held("training step, together / alone",
             statistics.median(both / one for both, one in zip(step_together, step_alone)), 1.10),
        held("round trip together, p99.9 in µs", median_of(together, "p999_us"), 25),
    ]
    return 0 if all(good) and not wrong else 1


def compare(files):
    documents = {file: json.loads(pathlib.Path(file).read_text()) for file in files}
    baseline = [document["steps_ms"] for document in documents.values() if document["order"] == "alone"]
    alone = {name: max(steps.get(name, 0) for steps in baseline) for steps in baseline for name in steps}
    wrong = 0
    for file, other in documents.items():
        if other["order"] == "alone":
            continue
        gyre = other["gyre"]
        lines = []
        for name, ms in other["steps_ms"].items():
            if name.endswith("blocked"):
                lines.append(f"{name}")
            elif name in alone and ms > alone[name] + 100:
                lines.append(f"{name} took {ms:.0f} ms, alone {alone[name]:.0f} ms")
        if not gyre or gyre["wrong"] or gyre["failed"] or not gyre["balanced"] or gyre["failure"] or not gyre["asked"]:
            lines.append(f"gyre: {gyre}")
        wrong += len(lines)
        p50 = other["steps_ms"].get("training step p50", 0)
        print(f"{file}: {other['order']}, {other['isolation']}, {other['workers']} workers, asked by {other['askers']}, "
              f"MPS {other['mps']}: {gyre.get('asked', 0)} replies, p50 {gyre.get('p50_us', 0):.1f} µs, "
              f"p99.9 {gyre.get('p999_us', 0):.0f} µs; training step {p50:.2f} ms, alone "
              f"{alone.get('training step p50', 0):.2f} ms; {gyre.get('wrong', 0)} replies wrong; {len(lines) or 'no'} complaints")
        for line in lines:
            print("  " + line)
    return 1 if wrong else 0


def multiprocessors(text):
    return text if text == "all" else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--order", default="torch-first", choices=["alone", "torch-first", "gyre-first"])
    parser.add_argument("--isolation", default="process")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--multiprocessors", type=multiprocessors, default=0)
    parser.add_argument("--wait", default="polite")
    parser.add_argument("--askers", type=int, default=4, help="threads that ask")
    parser.add_argument("--python-threads", action="store_true")
    parser.add_argument("--seconds", type=float, default=2, help="of training, and of each measurement")
    parser.add_argument("--compare", nargs="+")
    parser.add_argument("--pairs", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare)
    if not arguments.pairs and not arguments.out:
        parser.error("--out, --compare or --pairs is needed")
    if importlib.util.find_spec("torch") is None:
        print("skipped: no PyTorch here")
        return 77
    signal.alarm(int(120 + arguments.pairs * (3 * arguments.seconds + 5) + LIMIT_S))
    return measure_pairs(arguments) if arguments.pairs else run(arguments)


if __name__ == "__main__":
    sys.exit(main())
