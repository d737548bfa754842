#!/usr/bin/env python3
"""A network that PyTorch trained, asked as an actor. Its weights stay where PyTorch has them.

    mlp.py                           trains, asks, and compares with PyTorch
    mlp.py --measure [--json FILE]   round trips beside PyTorch: eager, torch.compile, and CUDA graphs

Needs a GPU, PyTorch and NumPy. Exit 1 where a score differs from PyTorch's, 77 where PyTorch finds no GPU.
"""
import argparse
import contextlib
import copy
import json
import os
import pathlib
import platform
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
with contextlib.suppress(ImportError):
    import torch
try:
    import gyre
except ImportError:  # not installed: this tree's own
    sys.path.insert(0, str(HERE.parents[1] / "runtime/python"))
    import gyre
import numpy  # noqa: E402

SMALL, LARGE = "inference::Mlp", "inference::LargeMlp"


def launch(actor, **options):
    text = {name: (HERE / name).read_text() for name in ("mlp.hpp", "large_mlp.hpp", "dense.hpp", "mlp.capnp")}
    large = actor == LARGE
    return gyre.launch(
        source=text["large_mlp.hpp" if large else "mlp.hpp"], types=[actor], schema={"inference/mlp.capnp": text["mlp.capnp"]},
        headers={} if large else {"inference/dense.hpp": text["dense.hpp"]}, engine="cuda", block=256, grid_scoped=large,
        blocks=32 if large else 0, **options,
    )  # fmt: skip


def network(widths, dtype):
    """Linear layers with ReLU between them, whose parameters lie one after the other in one tensor."""
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1]).to("cuda", dtype)
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in net.parameters()])
    begin = 0
    for parameter in net.parameters():
        parameter.data = flat[begin : begin + parameter.numel()].view_as(parameter)
        begin += parameter.numel()
    return net, flat


def train(net, steps):
    """Towards the features' sums by eighths: something to learn."""
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(steps):
        x = torch.rand(256, net[0].in_features, device="cuda", dtype=net[0].weight.dtype) * 2 - 1
        wanted = x.reshape(256, net[-1].out_features, -1).sum(2)
        loss = torch.nn.functional.mse_loss(net(x), wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    torch.cuda.synchronize()
    return loss.item()


def use_weights(runtime, actor, flat, keys=1):
    weights = runtime.import_tensor(flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat, read_only=True)
    for key in range(keys):
        runtime.client().ask(actor, key, "UseWeights", {"weights": weights})
    return weights


def ask(runtime, actor, x):
    reply = runtime.client().ask(actor, 0, "InferRequest", {"features": x.reshape(-1)})
    return numpy.array(reply["scores"], dtype="float32").reshape(len(x), -1)


def compared(net, runtime, actor):
    """The largest difference from PyTorch's scores, and PyTorch's own from those in double."""
    exact = copy.deepcopy(net).double()
    worst = own = 0.0
    for rows in (1, 3, 4, 16):
        x = torch.rand(rows, net[0].in_features, device="cuda") * 2 - 1
        x = x.to(net[0].weight.dtype)
        with torch.no_grad():
            theirs, right = net(x).double().cpu().numpy(), exact(x.double()).cpu().numpy()
        ours = ask(runtime, actor, x.float().cpu().numpy())
        reference = theirs if net[0].weight.dtype == torch.float32 else right
        worst = max(worst, float(abs(ours - reference).max()))
        own = max(own, float(abs(theirs - right).max()))
    return worst, own


def show():
    failed = False
    net, flat = network((64, 128, 64, 8), torch.float32)
    print(f"trained 300 steps: loss {train(net, 300):.4f}")
    with launch(SMALL) as runtime:
        weights = use_weights(runtime, SMALL, flat)
        worst, _ = compared(net, runtime, SMALL)
        print(f"{SMALL}: the largest difference from PyTorch's scores is {worst:.1e}")
        failed |= not worst < 1e-5
        print(f"trained 300 steps more, in the same tensor: loss {train(net, 300):.4f}")
        worst, _ = compared(net, runtime, SMALL)
        print(f"{SMALL}: nothing was copied, and the largest difference is {worst:.1e}")
        failed |= not worst < 1e-5
        weights.close()
    net, flat = network((256, 512, 512, 16), torch.bfloat16)
    with launch(LARGE, workers=1) as runtime:
        weights = use_weights(runtime, LARGE, flat)
        worst, own = compared(net, runtime, LARGE)
        print(f"{LARGE}: {worst:.1e} from scores in double; PyTorch's bfloat16 differs by {own:.1e}")
        failed |= not worst <= 2 * own
        weights.close()
    return int(failed)


# ---- Measuring


class Pytorch:
    """Round trips through PyTorch: features in page-locked memory to scores in page-locked memory."""

    def __init__(self, net, rows, compiled=None):
        dtype = net[0].weight.dtype
        self.stream = torch.cuda.Stream()
        self.x = torch.empty(rows, net[0].in_features, dtype=dtype).pin_memory()
        self.y = torch.empty(rows, net[-1].out_features, dtype=dtype).pin_memory()
        self.device_x = self.x.to("cuda")
        self.net = compiled or net
        self.graph = None

    def enqueue(self):
        self.device_x.copy_(self.x, non_blocking=True)
        self.y.copy_(self.net(self.device_x), non_blocking=True)

    def captured(self):
        with torch.no_grad(), torch.cuda.stream(self.stream):
            for _ in range(3):
                self.enqueue()
        self.stream.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
            self.enqueue()
        return self

    def __call__(self, x):
        self.x.copy_(x)
        with torch.cuda.stream(self.stream):
            if self.graph is not None:
                self.graph.replay()
            else:
                with torch.no_grad():
                    self.enqueue()
        self.stream.synchronize()
        return self.y


class Dict:
    def __init__(self, runtime, actor, key):
        self.client, self.actor, self.key = runtime.client(), actor, key

    def __call__(self, x):
        return self.client.ask(self.actor, self.key, "InferRequest", {"features": x})["scores"]


class Prepared:
    def __init__(self, runtime, actor, key, net, rows):
        self.ask = runtime.client().prepare(
            actor, key, "InferRequest", features=rows * net[0].in_features,
            max_reply_bytes=16 + 4 * rows * net[-1].out_features)  # fmt: skip
        self.features = self.ask.request.features

    def __call__(self, x):
        self.features[:] = x
        return self.ask().scores


def time_calls(call, inputs, expected, limit, count):
    """Nanoseconds of each call, whose scores are compared with those expected, between the calls."""
    samples = []
    for i in range(count):
        x = inputs[i % len(inputs)]
        begin = time.perf_counter_ns()
        scores = call(x)
        samples.append(time.perf_counter_ns() - begin)
        scores = scores.float().numpy() if hasattr(scores, "numpy") else numpy.asarray(scores)
        if not abs(scores.reshape(-1) - expected[i % len(inputs)]).max() < limit:
            raise SystemExit(f"{call}: a score is wrong")
    return samples


def summary(name, rows, threads, rounds):
    every = sorted(sample for samples, _ in rounds for sample in samples)
    at = lambda share: every[min(len(every) - 1, int(share * len(every)))] / 1000  # noqa: E731
    return {"name": name, "rows": rows, "threads": threads, "messages": len(every),
            "p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999),
            "requests_per_s": statistics.median(len(samples) / seconds for samples, seconds in rounds)}  # fmt: skip


def one_round(callers, inputs, expected, limit, count):
    """Samples of each name's callers, a thread for each caller, and seconds."""
    results = {}
    for name, each in callers.items():
        samples = [[] for _ in each]
        failures = []

        def work(t, name=name, each=each, samples=samples, failures=failures):
            try:
                samples[t] = time_calls(each[t], inputs, expected, limit, count // len(each))
            except BaseException as error:  # shown by the thread that measures
                failures.append(f"{name}: {error!r}")

        # The first in this thread: graphs of torch.compile belong to the thread that made them.
        workers = [threading.Thread(target=work, args=(t,)) for t in range(1, len(each))]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        work(0)
        for worker in workers:
            worker.join()
        if failures:
            raise SystemExit(f"mlp.py: measuring {failures[0]}")
        results[name] = ([sample for some in samples for sample in some], time.perf_counter() - begin)
    return results


def gyre_round(actor, net, flat, rows, threads, *timing):
    with launch(actor, workers=threads, wait="spin") as runtime:
        weights = use_weights(runtime, actor, flat, threads)
        callers = {"gyre prepared": [Prepared(runtime, actor, t, net, rows) for t in range(threads)]}
        if threads == 1:
            callers["gyre dict"] = [Dict(runtime, actor, 0)]
        one_round(callers, *timing[:-1], 50)  # not counted
        results = one_round(callers, *timing)
        weights.close()
        return results


def machine(commit, rounds):
    def line(path, name):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(path).read_text().splitlines():
                if line.startswith(name):
                    return line.split(":")[-1].strip()
        return "unknown"

    return {"gpu": torch.cuda.get_device_name(), "driver": line("/sys/module/nvidia/version", ""), "cuda": torch.version.cuda,
            "cpu": line("/proc/cpuinfo", "model name"), "cpus": os.cpu_count(), "torch": torch.__version__,
            "python": platform.python_version(), "commit": commit, "rounds": rounds,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}  # fmt: skip


def measure(out, commit, rounds, count):
    """PyTorch is measured while no engine runs: without MPS they would take turns on the GPU."""
    table = []
    for actor, widths, dtype, limit in ((SMALL, (64, 128, 64, 8), torch.float32, 1e-5),
                                        (LARGE, (256, 512, 512, 16), torch.bfloat16, 2e-2)):  # fmt: skip
        net, flat = network(widths, dtype)
        for rows, threads in ((1, 1), (4, 1), (16, 1), (1, 16)):
            if actor == LARGE and threads != 1:
                continue  # its set has one worker, the whole grid
            given = [(torch.rand(rows, widths[0]) * 2 - 1).to(dtype) for _ in range(16)]
            with torch.no_grad():
                expected = [net(x.cuda()).float().cpu().numpy().reshape(-1) for x in given]
            arrays = [x.float().numpy().reshape(-1) for x in given]
            pytorch = {"PyTorch CUDA graph": [Pytorch(net, rows).captured() for _ in range(threads)]}
            if threads == 1:
                pytorch["PyTorch eager"] = [Pytorch(net, rows)]
                pytorch["PyTorch compiled"] = [Pytorch(net, rows, torch.compile(net, mode="reduce-overhead"))]
            one_round(pytorch, given, expected, limit, 50 * threads)  # compiles
            results = {}
            for _ in range(rounds):
                both = gyre_round(actor, net, flat, rows, threads, arrays, expected, limit, count)
                both |= one_round(pytorch, given, expected, limit, count)
                for name, result in both.items():
                    results.setdefault(name, []).append(result)
            for name, result in results.items():
                row = summary(name, rows, threads, result) | {"actor": actor}
                table.append(row)
                print(f"{actor:20} {name:20} batch {rows:2} threads {threads:2}  p50 {row['p50_us']:7.2f}  p99 "
                      f"{row['p99_us']:7.2f}  p99.9 {row['p999_us']:7.2f} µs  {row['requests_per_s']:8.0f}/s", flush=True)
    if out:
        pathlib.Path(out).write_text(json.dumps({"benchmark": "inference-python", "machine": machine(commit, rounds), "rows": table},
                                                indent=2))
    return 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--measure", action="store_true")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--count", type=int, default=1000, help="calls a round")
    options.add_argument("--json", help="a file for the figures, as JSON")
    options.add_argument("--commit", default="unknown", help="that Gyre was built of, for FILE")
    given = options.parse_args()
    if "torch" not in globals() or not torch.cuda.is_available():
        print("mlp.py: PyTorch finds no GPU")
        return 77
    torch.manual_seed(1)
    return measure(given.json, given.commit, given.rounds, given.count) if given.measure else show()


if __name__ == "__main__":
    sys.exit(main())
