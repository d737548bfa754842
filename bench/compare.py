#!/usr/bin/env python3
"""Compares two builds of gyre-bench, or two sets of results.

    compare.py A B [--rounds N] [--worse 3%] [--metric NAME] [--only-a=TEXT] [--only-b=TEXT] [--keep DIR]
               -- ARGUMENTS…
        A and B are gyre-bench programs: runs `A ARGUMENTS` and `B ARGUMENTS` in turn, N times each, the order
        changing from round to round. The same program twice compares two settings: --only-b='--isolation process'.
    compare.py A B [--worse 3%] [--metric NAME]
        A and B are results: JSON files that gyre-bench wrote with --json, or folders of them; the first of A is
        held against the first of B, in the order of their names, and so on.

For each row that both have: the median of the rounds' ratios B / A, with a 95% confidence interval by bootstrap
(of the geometric mean; nothing is assumed of how the times are distributed), and whether B is worse: by more than
--worse in the median, and with an interval that lies on the worse side of 1 altogether. Fewer than 5 rounds say
little, and are called so.

Exit: 0 no row is worse, 1 one is, 2 bad usage or no row in common, 3 a program failed.
"""
import argparse
import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

# What tells rows of one run apart, where they have it.
KEYS = ("name", "size", "bytes", "gaps", "workers", "threads", "load")
# The figures that are compared, the first that a row has; and whether more is better.
METRICS = (("p50_ns", False), ("p50", False), ("messages_per_s", True), ("gb_per_s_in", True))


def fail(code, text):
    print(f"compare.py: {text}", file=sys.stderr)
    sys.exit(code)


def rows_of(document):
    return {tuple((key, row[key]) for key in KEYS if key in row): row for row in document["rows"]}


def read(path):
    try:
        with open(path) as file:
            return rows_of(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(2, f"reading {path}: {error!r}: it is no result of gyre-bench --json")


def result_files(path):
    if os.path.isfile(path):
        return [path]
    return sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".json"))


def run(command, output):
    command = [*command, "--json", output]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        fail(3, f"{' '.join(command)}: exit code {done.returncode}")
    return read(output)


def rounds_of_programs(a, b, rounds, folder):
    for side in "ab":
        os.makedirs(os.path.join(folder, side), exist_ok=True)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        file_a, file_b = (os.path.join(folder, side, f"{number:03}.json") for side in "ab")
        if number % 2 == 0:
            first = run(a, file_a)
            yield first, run(b, file_b)
        else:
            second = run(b, file_b)
            yield run(a, file_a), second


def rounds_of_results(a, b):
    files_a, files_b = result_files(a), result_files(b)
    if not files_a or len(files_a) != len(files_b):
        fail(2, f"{a} has {len(files_a)} results and {b} {len(files_b)}: as many are needed of each, one at least")
    for file_a, file_b in zip(files_a, files_b):
        yield read(file_a), read(file_b)


def metric_of(row, wanted):
    for metric, more_is_better in METRICS:
        if metric in row and wanted in (None, metric):
            return metric, more_is_better
    return (wanted, wanted.endswith("_per_s")) if wanted in row else (None, False)


def interval(logarithms, generator, samples=2000):
    """95% of the means of samples drawn with replacement."""
    count = len(logarithms)
    means = sorted(sum(generator.choices(logarithms, k=count)) / count for _ in range(samples))
    return means[int(samples * 0.025)], means[int(samples * 0.975) - 1]


def per_cent(text):
    value = float(text.rstrip("%")) / 100
    if not 0 <= value < 10:
        raise ValueError
    return value


def main():
    own, separator, arguments = sys.argv[1:], False, []
    if "--" in own:
        at = own.index("--")
        own, separator, arguments = own[:at], True, own[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--worse", type=per_cent, default=0.03, metavar="PERCENT")
    parser.add_argument("--metric", metavar="NAME", help="a number of the rows: p50_ns, p999_ns, messages_per_s, …")
    parser.add_argument("--only-a", type=shlex.split, default=[], metavar="TEXT", help="arguments of A alone")
    parser.add_argument("--only-b", type=shlex.split, default=[], metavar="TEXT", help="arguments of B alone")
    parser.add_argument("--keep", metavar="DIR", help="keep the results, in DIR/a and DIR/b")
    settings = parser.parse_args(own)
    if settings.rounds < 1:
        parser.error("--rounds must be 1 or more")
    for path in (settings.a, settings.b):
        if not os.path.exists(path):
            fail(2, f"{path}: there is no such file")
    unkept = tempfile.TemporaryDirectory()
    if separator:
        commands = [settings.a, *arguments, *settings.only_a], [settings.b, *arguments, *settings.only_b]
        rounds = rounds_of_programs(*commands, settings.rounds, settings.keep or unkept.name)
    else:
        rounds = rounds_of_results(settings.a, settings.b)

    ratios = {}
    metrics = {}
    for rows_a, rows_b in rounds:
        for key in rows_a:
            metric, more_is_better = metric_of(rows_a[key], settings.metric)
            if metric is None or not rows_b.get(key, {}).get(metric) or not rows_a[key][metric]:
                continue
            ratios.setdefault(key, []).append(rows_b[key][metric] / rows_a[key][metric])
            metrics[key] = metric, more_is_better
    if not ratios:
        fail(2, f"{settings.a} and {settings.b} have no row with that figure in common")

    generator = random.Random(1)
    worse = []
    print(f"{'row':<44} {'figure':<15} {'rounds':>6} {'B / A':>7} {'95% interval':>17}  verdict")
    for key, values in ratios.items():
        metric, more_is_better = metrics[key]
        median = statistics.median(values)
        low, high = (math.exp(end) for end in interval([math.log(value) for value in values], generator))
        if more_is_better:
            is_worse = median < 1 / (1 + settings.worse) and high < 1
            is_better = low > 1
        else:
            is_worse = median > 1 + settings.worse and low > 1
            is_better = high < 1
        verdict = "WORSE" if is_worse else "better" if is_better else "no difference shown"
        if len(values) < 5:
            verdict += " (few rounds)"
        name = " ".join(str(value) for _, value in key)
        print(f"{name:<44} {metric:<15} {len(values):>6} {median:>7.3f} {f'{low:.3f} to {high:.3f}':>17}  {verdict}")
        if is_worse:
            worse.append(name)
    if worse:
        print(f"B is worse by more than {settings.worse:.1%}: {', '.join(worse)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
