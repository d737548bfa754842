#!/usr/bin/env python3
"""PyTorch and Gyre in one program on one GPU: nothing that PyTorch calls waits for Gyre's workers.

    beside_torch.py --out FILE [--order alone|torch-first|gyre-first] [--isolation process|in_process]
                    [--transport auto|bar|pinned] [--workers N] [--seconds S]
    beside_torch.py --compare ALONE.json BESIDE.json …

The first form runs PyTorch's first uses, a captured graph and training, with four threads of C++ that ask all the time
(tests/gpu/askers.cpp), and writes how long each step took. The second fails where a step took 100 ms longer than
alone, a reply was wrong or missing, or the books do not balance.
Needs $GYRE_LIBRARY and $GYRE_ASKERS, the paths of libgyre.so and libgyre_askers.so, and PyTorch.
"""
import argparse
import ctypes
import json
import os
import pathlib
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


class Gyre:
    """A runtime with four threads that ask it."""

    def __init__(self, arguments):
        import gyre

        self.askers = ctypes.CDLL(os.environ["GYRE_ASKERS"])
        self.askers.askers_start.restype = ctypes.c_void_p
        self.askers.askers_start.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
        self.askers.askers_stop.argtypes = [ctypes.c_void_p, ctypes.POINTER(Report)]
        began = time.perf_counter()
        self.runtime = gyre.launch(
            engine="cuda", isolation=arguments.isolation, transport=arguments.transport, workers=arguments.workers
        )
        self.launch_ms = (time.perf_counter() - began) * 1e3
        self.threads = self.askers.askers_start(self.runtime._handle, 4)

    def end(self):
        report = Report()
        self.askers.askers_stop(self.threads, ctypes.byref(report))
        found = {name: getattr(report, name) for name, _ in Report._fields_}
        info = self.runtime.info()
        ended = self.runtime.terminate()
        found |= {"launch_ms": self.launch_ms, "transport": info["transport"], "failure": info["failure"]}
        found |= {"balanced": ended["balanced"], "terminate_ms": ended["terminate_ms"]}
        self.runtime.close()
        return found


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
                    "mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ, "steps_ms": steps, "gyre": gyre_found}
        pathlib.Path(arguments.out).write_text(json.dumps(document, indent=1))

    training = []
    made = {}

    def launch():
        made["gyre"] = Gyre(arguments)

    if arguments.order == "gyre-first":
        step("launch gyre", launch)
    import torch

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
        import importlib.util

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
    model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).to(device)
    optimiser = torch.optim.Adam(model.parameters())
    x, y = torch.randn(256, 1024, device=device), torch.randint(0, 10, (256,), device=device)

    def train():
        until = time.perf_counter() + arguments.seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            torch.cuda.synchronize()
            training.append((time.perf_counter() - began) * 1e3)

    def first_train():
        seconds, arguments.seconds = arguments.seconds, 0.01
        train()
        arguments.seconds = seconds
        training.clear()

    step("first training step", first_train)
    train()
    steps["training step p50"] = statistics.median(training)
    found = {}
    if "gyre" in made:
        found = made["gyre"].end()
    step("synchronize after gyre", torch.cuda.synchronize)
    write(found)


def compare(files):
    alone, *others = [json.loads(pathlib.Path(file).read_text()) for file in files]
    wrong = 0
    for file, other in zip(files[1:], others):
        gyre = other["gyre"]
        lines = []
        for name, ms in other["steps_ms"].items():
            if name.endswith("blocked"):
                lines.append(f"{name}")
            elif name in alone["steps_ms"] and ms > alone["steps_ms"][name] + 100:
                lines.append(f"{name} took {ms:.0f} ms, alone {alone['steps_ms'][name]:.0f} ms")
        if not gyre or gyre["wrong"] or gyre["failed"] or not gyre["balanced"] or gyre["failure"] or not gyre["asked"]:
            lines.append(f"gyre: {gyre}")
        wrong += len(lines)
        p50 = other["steps_ms"].get("training step p50", 0)
        print(f"{file}: {other['order']}, {other['isolation']}, {other['workers']} workers, MPS {other['mps']}: "
              f"{gyre.get('asked', 0)} replies, p50 {gyre.get('p50_us', 0):.1f} µs, p99.9 {gyre.get('p999_us', 0):.0f} µs; "
              f"training step {p50:.2f} ms, alone {alone['steps_ms']['training step p50']:.2f} ms; {len(lines)} wrong")
        for line in lines:
            print("  " + line)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--order", default="torch-first", choices=["alone", "torch-first", "gyre-first"])
    parser.add_argument("--isolation", default="process")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--compare", nargs="+")
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare)
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
