#!/usr/bin/env python3
"""Writes the figures of README.md and docs/performance.md from bench/results/current; needs nothing but Python.

    figures.py --write [--provisional]   fills what stands between the markers, and draws docs/latency.svg and load.svg
    figures.py --check [--provisional]   fails where a page or a drawing differs from what --write would make
    figures.py --list                    the names that a page may use
    --root DIR                           the tree (default: the one that this script is in)

A page says where a figure goes, as a block or within a line:
    <!-- figures: NAME -->anything<!-- end of figures -->
Both also fail where a result is missing, where results are not of one commit whose tree had no changes (those in
FILES_OF_OTHER_COMMITS may each be of another one), and where a page has a measured figure outside the markers.
--provisional accepts results of several commits.
"""
import argparse
import glob
import json
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot  # noqa: E402

RESULTS = "bench/results/current"
FILES = ("rtt-bar", "rtt-pinned", "rtt-alternatives", "rtt-cpu", "throughput-bar", "throughput-pinned", "sweep",
         "launch-bar", "launch-pinned", "payload", "inference", "inference-python", "workers", "idle", "sparse-cuda",
         "sparse-cpu", "rollback", "api",
         "views", "frames", "mailbox", "actors", "actors-pair", "savina", "savina-larger",
         "counters", "soak", "gpu-test")
# Figures of these stand beside each other.
COMPARED = ("mailbox", "actors", "actors-pair")
# Those that may be missing: the tables lack their lines then. All are of one commit. The first is of a machine that has
# two processors, without a GPU: tools/measure.sh does not make it, and does not delete it.
OPTIONAL_FILES = ("nats-two-processors", "nats-two-cpus", "nats-cpu", "nats-cpu-spin", "nats-cuda")
# No figures of the files of FILES stand beside those of one of these, which may be of another commit.
FILES_OF_OTHER_COMMITS = (*COMPARED, "savina", "savina-larger", "counters", *OPTIONAL_FILES)
PAGES_WITHOUT_OTHER_FIGURES = ("README.md", "docs/performance.md")
MARKED = re.compile(r"<!-- figures: ([a-z-]+) -->(.*?)<!-- end of figures -->", re.DOTALL)
MEASURED = re.compile(r"[0-9](?: |&nbsp;)?(?:ns|µs|us|GB/s|M/s|million messages|watts?)\b")


class Problem(Exception):
    pass


class Results:
    def __init__(self, root):
        self.folder = os.path.join(root, RESULTS)
        self.documents = {}
        missing = []
        for name in FILES + OPTIONAL_FILES:
            path = os.path.join(self.folder, name + ".json")
            try:
                with open(path) as file:
                    self.documents[name] = json.load(file)
            except FileNotFoundError:
                if name in FILES:
                    missing.append(name + ".json")
            except json.JSONDecodeError as error:
                raise Problem(f"{RESULTS}/{name}.json is no JSON: {error}") from error
        if missing:
            raise Problem(f"{RESULTS} has no {', '.join(missing)}; tools/measure.sh and tools/gpu_test.sh make them")
        known = {name + ".json" for name in FILES + OPTIONAL_FILES}
        unknown = [name for name in sorted(os.listdir(self.folder)) if name not in known]
        if unknown:
            raise Problem(f"{RESULTS} has files that no page uses: {', '.join(unknown)}")

    def commit(self, name):
        """As text; None where the file does not say."""
        document = self.documents[name]
        machine = document.get("machine", document)
        commit = machine.get("commit")
        return f"{commit} and changes" if commit and machine.get("dirty") else commit

    def check_commits(self):
        commits = {}
        for name in self.documents:
            commits.setdefault(self.commit(name), []).append(name + ".json")
        apart = {name + ".json" for name in FILES_OF_OTHER_COMMITS}
        of_the_rest = [commit for commit, names in commits.items() if not apart.issuperset(names)]
        if len(of_the_rest) > 1 or None in commits or "unknown" in commits or any("changes" in c for c in commits):
            told = "\n".join(f"  {commit or 'no commit'}: {', '.join(names)}" for commit, names in commits.items())
            raise Problem(f"{RESULTS} is not of one commit without changes:\n{told}")
        compared = {name: (self.commit(name), self.documents[name].get("machine", {}).get("gpu")) for name in COMPARED}
        if len(set(compared.values())) > 1:
            told = "\n".join(f"  {name}.json: {commit}, {gpu}" for name, (commit, gpu) in compared.items())
            raise Problem(f"{RESULTS}: figures that a page compares are of different commits or GPUs:\n{told}")
        optional = {name: self.commit(name) for name in OPTIONAL_FILES if name in self.documents}
        if len(set(optional.values())) > 1:
            told = "\n".join(f"  {name}.json: {commit}" for name, commit in optional.items())
            raise Problem(f"{RESULTS}: figures of one table are of different commits:\n{told}")

    def rows(self, file, **wanted):
        return [row for row in self.documents[file]["rows"] if all(row.get(k) == v for k, v in wanted.items())]

    def row(self, file, **wanted):
        rows = self.rows(file, **wanted)
        if len(rows) != 1:
            raise Problem(f"{RESULTS}/{file}.json has {len(rows)} rows with {wanted}, not one")
        return rows[0]


def us(ns):
    value = ns / 1000
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def millions(rate):
    return f"{rate / 1e6:.1f}"



def table(head, lines):
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in [head, ["---"] * len(head)] + lines)


def readme(results):
    lines = []
    for file, where, polled in (("rtt-bar", "BAR", ""), ("rtt-pinned", "pinned memory", ", two polling warps")):
        for name, shown in (("gyre", f"Gyre over {where}"), ("raw", f"raw over {where}{polled}")):
            row = results.row(file, name=name)
            lines.append([shown, us(row["p50_ns"]), us(row["p99_ns"]), ratio(row["p50_ratio"])])
    card = " and ".join(sorted({results.documents[file]["machine"]["gpu"] for file in ("rtt-bar", "rtt-pinned")}))
    links = (f"[BAR]({RESULTS}/rtt-bar.json), [pinned]({RESULTS}/rtt-pinned.json)")
    return table(["row", "p50", "p99", "p50 / raw"], lines) + f"\n\n{card}. {commits_text(results, ('rtt-bar', 'rtt-pinned'))}: {links}."


def commits_text(results, names):
    commits = sorted({results.commit(name) or "not recorded" for name in names})
    return ("Commit " if len(commits) == 1 else "Commits ") + ", ".join(commits)


def provenance(results):
    if len({results.commit(name) for name in results.documents}) == 1:
        return f"All of them are of commit {results.commit(FILES[0])}."
    if len({results.commit(name) for name in results.documents if name not in FILES_OF_OTHER_COMMITS}) == 1:
        common = results.commit(FILES[0])
        others = ", ".join(f"`{name}.json`" for name in FILES_OF_OTHER_COMMITS
                           if name in results.documents and results.commit(name) != common)
        return f"All of them but {others} are of commit {common}."
    return "The present figures are provisional: they come from several commits, and older files do not name theirs."


def machines(results):
    lines = []
    seen = {}
    for name in results.documents:
        machine = results.documents[name].get("machine")
        if machine is None:
            continue
        gpu = f"{machine['gpu']}, driver {machine['driver']}, CUDA {machine['cuda']}" if machine["gpu"] else "none used"
        key = (gpu, f"{machine['cpus']} × {machine['cpu'].strip()}", machine["date"][:10],
               results.commit(name) or "not recorded")
        seen.setdefault(key, []).append(name)
    for (gpu, cpu, date, commit), names in seen.items():
        lines.append([gpu, cpu, date, commit, ", ".join(names)])
    return table(["GPU", "processors", "date", "commit", "files"], lines)


def round_trips(results):
    lines = []
    for file, where in (("rtt-bar", "BAR"), ("rtt-pinned", "pinned")):
        for row in results.rows(file):
            if row["name"] not in ("gyre", "raw"):
                continue
            lines.append([f"{row['name']}, {where}", us(row["p50_ns"]), us(row["p99_ns"]), us(row["p999_ns"]),
                          ratio(row["p50_ratio"]), ratio(row["p999_ratio"])])
    return table(["row", "p50 µs", "p99 µs", "p99.9 µs", "p50 / raw", "p99.9 / raw"], lines)


ALTERNATIVES = {"gyre": "Gyre, 64 bytes", "raw": "bare kernel, the same packets", "naive-ring": "payload, then a number",
                "gyre vector-add": "Gyre, two vectors of 25 floats", "launch-sync": "launch of an empty kernel",
                "graph-sync": "CUDA graph of an empty kernel", "launch-pinned": "launch on mapped pinned memory",
                "copies-launch-sync": "copies in, launch, copy out",
                "graph-copies-sync": "CUDA graph of these copies and kernel"}


def alternatives(results):
    return table(["row", "what it does", "p50 µs", "p99 µs", "p50 / Gyre, same work"],
                 [[row["name"], ALTERNATIVES[row["name"]], us(row["p50_ns"]), us(row["p99_ns"]),
                   ratio(row["p50_to_gyre"])]
                  for row in results.rows("rtt-alternatives") if row["name"] in ALTERNATIVES])


def cpu_engine(results):
    # A build with CAF has rows of it, too. The page compares with CAF in another table.
    return table(["row", "p50 µs", "p99 µs"],
                 [[row["name"], us(row["p50_ns"]), us(row["p99_ns"])] for row in results.rows("rtt-cpu")
                  if not row["name"].startswith("caf")])


def throughput(results):
    lines = []
    for file, where in (("throughput-bar", "BAR"), ("throughput-pinned", "pinned")):
        for workers in sorted({row["workers"] for row in results.rows(file)}):
            gyre, tells, raw = (results.row(file, name=name, workers=workers) for name in ("gyre", "gyre tells", "raw"))
            lines.append([where, workers, millions(gyre["messages_per_s"]), millions(tells["messages_per_s"]),
                          millions(raw["messages_per_s"]), ratio(gyre["rate_ratio"])])
    return table(["transport", "workers", "asks M/s", "tells M/s", "raw M/s", "asks / raw"], lines)


def launch(results):
    lines = []
    for file, where in (("launch-bar", "BAR"), ("launch-pinned", "pinned")):
        gyre, bare = results.row(file, name="gyre"), results.row(file, name="bare")
        lines.append([where, f"{gyre['p50_ns'] / 1e6:.0f}", f"{bare['p50_ns'] / 1e6:.0f}", ratio(gyre["p50_ratio"]),
                      us(gyre["terminate_p50_ns"])])
    return table(["transport", "Gyre ms", "bare process ms", "ratio", "terminate µs"], lines)


def payload(results):
    lines = [[f"{row['bytes'] / 2 ** 20:g}", row["name"], f"{row['gb_per_s_in'] + row['gb_per_s_out']:.1f}",
              ratio(row["rate_ratio"])] for row in results.rows("payload") if "beside" not in row]
    return table(["MiB a vector", "row", "GB/s, both ways", "/ cuMemcpyAsync"], lines)


def bulk(results):
    lines = [[f"{row['bytes'] / 2 ** 20:g}", row["name"], f"{row['gb_per_s']:.1f}",
              f"{results.row('payload', name=row['beside'], bytes=row['bytes'])['gb_per_s']:.1f}", ratio(row["rate_ratio"])]
             for row in results.rows("payload") if row.get("beside", row["name"]) != row["name"]]
    return table(["MiB", "row", "GB/s", "plain copies", "ratio"], lines)


def inference(results):
    lines = []
    for row in results.rows("inference"):
        lines.append([row["workers"], row["size"] // 256, row["name"], us(row["p50_ns"]), us(row["p99_ns"]), us(row["p999_ns"]),
                      ratio(row["p50_ratio"]), f"{row['requests_per_s'] / 1e3:.0f}"])
    return table(["threads", "batch", "row", "p50 µs", "p99 µs", "p99.9 µs", "p50 / graph", "thousand a second"], lines)


def inference_python(results):
    lines = []
    for row in results.rows("inference-python"):
        gyre = results.row("inference-python", actor=row["actor"], rows=row["rows"], threads=row["threads"], name="gyre prepared")
        lines.append([row["actor"].split("::")[1], row["threads"], row["rows"], row["name"],
                      *(us(1000 * row[key]) for key in ("p50_us", "p99_us", "p999_us")), ratio(row["p50_us"] / gyre["p50_us"]),
                      f"{row['requests_per_s'] / 1e3:.0f}"])
    return table(["network", "threads", "batch", "row", "p50 µs", "p99 µs", "p99.9 µs", "p50 / prepared", "thousand a second"],
                 lines)


def workers(results):
    return table(["workers", "row", "p50 µs", "p99 µs", "p50 / alone"],
                 [[row["workers"], row["name"], us(row["p50_ns"]), us(row["p99_ns"]), ratio(row["p50_to_alone"])]
                  for row in results.rows("workers")])


def idle(results):
    return table(["row", "processors used", "watts"],
                 [[row["name"], f"{row['processors']:.4f}", f"{row['watts']:.0f}" if row.get("watts") else "-"]
                  for row in results.rows("idle")])


def sparse(results):
    lines = []
    for file, engine in (("sparse-cuda", "CUDA"), ("sparse-cpu", "CPU")):
        for row in results.rows(file, kind="after a pause"):
            if row["name"] == "gyre spin":
                continue
            caller = us(row["caller_processor_ns"]) if "caller_processor_ns" in row else "-"
            lines.append([engine, f"{row['pause_us'] / 1000:g}", row["name"], us(row["p50_ns"]), us(row["p99_ns"]), caller])
    return table(["engine", "pause ms", "row", "p50 µs", "p99 µs", "caller's processor µs"], lines)


def rollback(results):
    lines = []
    for size in ("64", "1024"):
        for fails in ("", "fails"):
            plain = results.row("rollback", name=f"{size} {fails}".strip())
            undone = results.row("rollback", name=f"{size} undone, {fails}" if fails else f"{size} undone")
            lines.append([size, "every message" if fails else "none", us(plain["p50_ns"]), us(undone["p50_ns"]),
                          ratio(undone["p50_ns"] / plain["p50_ns"])])
    return table(["state bytes", "fails", "without µs", "with rollback µs", "ratio"], lines)


def api(results):
    return table(["row", "p50 µs", "p99 µs", "/ ask, get()"],
                 [["ask, get()" if row["name"] == "gyre" else row["name"], us(row["p50_ns"]), us(row["p99_ns"]),
                   ratio(row["p50_ratio"])] for row in results.rows("api")])


def views(results):
    return table(["row", "p50", "unit", "/ plain struct"],
                 [[row["name"], f"{row['p50']:.0f}", row["unit"], ratio(row["p50_ratio"])] for row in results.rows("views")])


def frames(results):
    return table(["form", "p50 µs", "worst µs", "most KiB", "over the bound"],
                 [[row["name"], us(row["p50_ns"]), us(row["time_ns"]["worst"]),
                   f"{row['memory_bytes']['worst'] / 1024:.0f}",
                   row["time_ns"]["over_bound"] + row["memory_bytes"]["over_bound"]] for row in results.rows("frames")])


NATS_RUNS = {"nats-two-processors": "CPU engine, {cpus} processors", "nats-two-cpus": "CPU engine, 2 of {cpus} processors",
             "nats-cpu": "CPU engine, {cpus} processors", "nats-cpu-spin": "CPU engine, `--wait spin`, {cpus} processors",
             "nats-cuda": "CUDA engine, {cpus} processors"}


def nats_runs(results):
    return [(file, shown.format(**results.documents[file]["machine"])) for file, shown in NATS_RUNS.items()
            if file in results.documents]


def spread(values, show):
    """The median, and the smallest and the largest."""
    return f"{show(statistics.median(values))} ({show(min(values))} to {show(max(values))})"


def nats(results):
    lines = []
    for file, shown in nats_runs(results):
        for gateway in results.rows(file, kind="round trip", name="gateway"):
            bare, local = (results.row(file, kind="round trip", name=name, size=gateway["size"]) for name in ("bare", "gyre"))
            over = [there["p50_ns"] - here["p50_ns"] for there, here in zip(gateway["rounds"], bare["rounds"])]
            futex = results.row(file, kind="round trip", name="futex")["p50_ns"]
            lines.append([shown, gateway["size"], us(bare["p50_ns"]), us(gateway["p50_ns"]), us(bare["p99_ns"]),
                          us(gateway["p99_ns"]), spread(over, lambda ns: f"{ns / 1e3:.0f}"),
                          us(futex) if gateway["size"] == 64 else "", us(local["p50_ns"])])
    return table(["run", "bytes", "bare p50 µs", "gateway p50 µs", "bare p99 µs", "gateway p99 µs", "gateway over bare µs",
                  "futex µs", "local ask µs"], lines)


def nats_rates(results):
    lines = []
    for file, shown in nats_runs(results):
        bare, gateway = (results.row(file, kind="rate", name=name) for name in ("bare", "gateway"))
        ratios = [there / here for there, here in zip(gateway["rounds"], bare["rounds"])]
        lines.append([shown, *(f"{row['messages_per_s'] / 1e3:.1f}" for row in (bare, gateway)), spread(ratios, ratio)])
    return table(["run", "bare, thousand a second", "gateway", "gateway / bare"], lines)


def mailbox(results):
    rates = results.documents["mailbox"]["rates"]
    workers = list(dict.fromkeys(row["workers"] for row in rates))
    lines = []
    for load, allowance in dict.fromkeys((row["load"], row["allowance"]) for row in rates):
        row_of = {row["workers"]: row for row in rates if (row["load"], row["allowance"]) == (load, allowance)}
        lines.append([load, allowance, *(f"{row_of[count]['messages_per_s'] / 1e9:.2f}" for count in workers)])
    return table(["load", "allowance", *(f"{count} workers" for count in workers)], lines)


def mailbox_one_way(results):
    return table(["one way", "p50 µs", "p99 µs", "p99.9 µs"],
                 [[row["name"], *(us(row[f"one_way_{point}_ns"]) for point in ("p50", "p99", "p999"))]
                  for row in results.documents["mailbox"]["latency"]])


def bare_rate(results, workers):
    """Of bare mailboxes with uniform load, and as many slots a pair as Gyre's."""
    rows = [row for row in results.documents["mailbox"]["rates"]
            if (row["load"], row["allowance"], row["workers"]) == ("uniform", 2, workers)]
    if len(rows) != 1:
        raise Problem(f"{RESULTS}/mailbox.json has {len(rows)} uniform rates of {workers} workers, not one")
    return rows[0]["messages_per_s"]


def actors(results):
    document = results.documents["actors"]
    workers = document["machine"]["workers"]
    bare = bare_rate(results, workers)
    return table(["messages to other actors", "workers", "million a second", "ratio to bare mailboxes"],
                 [[row["name"], str(workers), millions(statistics.median(row["messages_per_s"])),
                   ratio(statistics.median(row["messages_per_s"]) / bare)] for row in document["rates"]])


def actors_one_way(results):
    document = results.documents["actors-pair"]
    bare = next(row["one_way_p50_ns"] for row in results.documents["mailbox"]["latency"]
                if row["name"] == "mailbox there and back")
    return table(["from handler to handler", "µs", "ratio to a bare message"],
                 [[name, us(statistics.median(document[key])), ratio(statistics.median(document[key]) / bare)]
                  for name, key in (("between two workers", "between_workers_ns"),
                                    ("within one worker", "within_a_worker_ns"),
                                    ("an ask of another worker, and its reply", "asks_ns"),
                                    ("to the host, and its answer", "host_passes_ns"))])


def actors_host(results):
    return table(["the host's round trip, in a set in which", "p50 µs", "p99 µs", "p99.9 µs", "p50 ratio"],
                 [[row["name"], *(us(row[f"{point}_ns"]) for point in ("p50", "p99", "p999")),
                   ratio(row["p50_ratio"])] for row in results.documents["actors-pair"]["rows"]])


def savina(results):
    lines = []
    wanted = [(file, name) for file in ("savina", "savina-larger")
              for name in dict.fromkeys(row["name"] for row in results.documents[file]["rows"])]
    for file, name in wanted:
        row_of = {row["engine"]: row for row in results.rows(file, name=name)}
        cuda = row_of["cuda"]
        rates = [millions(row_of[engine]["messages_per_s"]) if engine in row_of else "-"
                 for engine in ("cuda", "cpu", "caf")]
        lines.append([name, str(cuda["instances"]), cuda["size"], millions(cuda["messages"]), *rates,
                      ratio(cuda["rate_to_caf"]) if "rate_to_caf" in cuda else "-"])
    return table(["benchmark", "instances", "an instance", "million messages", "CUDA engine", "CPU engine", "CAF",
                  "CUDA engine / CAF"], lines)


def savina_engines(results):
    engines, larger = ("; ".join(engine["details"] for engine in results.documents[file]["engines"])
                       for file in ("savina", "savina-larger"))
    if engines != larger:
        raise Problem(f"{RESULTS}/savina.json is of other engines than savina-larger.json: {engines}, and {larger}")
    return engines


def counters(results):
    return table(["counters", "million", "increments, million", "seconds", "million a second", "bytes a counter"],
                 [[row["name"], millions(row["counters"]), millions(row["increments"]), f"{row['seconds']:.2f}",
                   millions(row["increments_per_s"]), f"{row['bytes_an_actor']:.1f}"]
                  for row in results.documents["counters"]["rows"]])


def soak(results):
    row = results.row("soak", name="soak")
    return f"{row['messages'] / 1e6:.0f} million messages, {row['workers']} workers, {row['threads']} threads: none " \
           f"lost, duplicated, torn or out of order"


def gpu_test(results):
    document = results.documents["gpu-test"]
    return f"{document['passed']} passed, {document['failed']} failed, {document['skipped']} skipped ({document['card']})"


def single(file, name, figure, form):
    return lambda results: form(results.row(file, name=name)[figure])


FIGURES = {
    "readme": readme, "machines": machines, "provenance": provenance, "round-trips": round_trips,
    "alternatives": alternatives, "cpu-engine": cpu_engine, "throughput": throughput, "launch": launch,
    "payload": payload, "bulk": bulk, "inference": inference, "inference-python": inference_python,
    "workers": workers, "idle": idle, "sparse": sparse, "rollback": rollback, "api": api,
    "views": views, "frames": frames, "nats": nats, "nats-rates": nats_rates,
    "mailbox": mailbox, "mailbox-one-way": mailbox_one_way, "actors": actors,
    "actors-one-way": actors_one_way, "actors-host": actors_host, "savina": savina,
    "savina-engines": savina_engines, "counters": counters, "soak": soak, "gpu-test": gpu_test,
    "bar-us": single("rtt-bar", "gyre", "p50_ns", us), "bar-ratio": single("rtt-bar", "gyre", "p50_ratio", ratio),
    "pinned-us": single("rtt-pinned", "gyre", "p50_ns", us),
    "pinned-ratio": single("rtt-pinned", "gyre", "p50_ratio", ratio),
    "graph-us": single("rtt-alternatives", "graph-sync", "p50_ns", us),
    "launch-us": single("rtt-alternatives", "launch-sync", "p50_ns", us),
    "copies-us": single("rtt-alternatives", "copies-launch-sync", "p50_ns", us),
    "vector-add-us": single("rtt-alternatives", "gyre vector-add", "p50_ns", us),
    "cpu-us": single("rtt-cpu", "gyre", "p50_ns", us),
}



def filled(text, page, results):
    def fill(match):
        name, before = match.groups()
        if name not in FIGURES:
            raise Problem(f"{page}: there are no figures named {name}; bench/figures.py --list has the names")
        figures = FIGURES[name](results)
        if before.startswith("\n"):
            figures = f"\n{figures}\n"
        elif "\n" in figures:
            raise Problem(f"{page}: {name} is a table: give the markers lines of their own")
        return f"<!-- figures: {name} -->{figures}<!-- end of figures -->"
    return MARKED.sub(fill, text)


def check_markers(text, page):
    begins = len(re.findall(r"<!-- figures:", text))
    if begins != len(MARKED.findall(text)) or begins != text.count("<!-- end of figures -->"):
        raise Problem(f"{page}: a marker has no partner, or its name is no name")
    if page in PAGES_WITHOUT_OTHER_FIGURES:
        prose = re.sub(r"^```.*?^```", "", MARKED.sub("", text), flags=re.DOTALL | re.MULTILINE)
        for line in prose.splitlines():
            if MEASURED.search(line):
                raise Problem(f"{page} has a figure outside the markers: {line.strip()[:160]}")


def made(root, results):
    """What each page and drawing should hold."""
    files = {}
    pages = ["README.md"] + sorted(os.path.relpath(path, root)
                                   for path in glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True))
    for page in pages:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            text = file.read()
        check_markers(text, page)
        if "<!-- figures:" in text:
            files[page] = filled(text, page, results)
    for page in PAGES_WITHOUT_OTHER_FIGURES:
        if page not in files:
            raise Problem(f"{page} has no marker for figures")
    alternatives_drawn = ("gyre", "raw", "naive-ring", "launch-sync", "graph-sync", "copies-launch-sync",
                          "graph-copies-sync")
    files["docs/latency.svg"] = plot.latency([("", results.documents["rtt-alternatives"])], alternatives_drawn, "")
    files["docs/load.svg"] = plot.load([("", results.documents["sweep"])], "")
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    what.add_argument("--list", action="store_true")
    parser.add_argument("--provisional", action="store_true")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    settings = parser.parse_args()
    if settings.list:
        print("\n".join(FIGURES))
        return 0
    try:
        results = Results(settings.root)
        if not settings.provisional:
            results.check_commits()
        files = made(settings.root, results)
    except (Problem, KeyError) as problem:
        print(f"figures.py: {'no field ' if isinstance(problem, KeyError) else ''}{problem}", file=sys.stderr)
        return 1
    different = 0
    for name, text in files.items():
        path = os.path.join(settings.root, name)
        before = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                before = file.read()
        if before == text:
            continue
        different += 1
        if settings.write:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(f"wrote {name}")
        else:
            print(f"figures.py: {name} is not what {RESULTS} says; run bench/figures.py --write", file=sys.stderr)
            for old, new in zip((before or "").splitlines(), text.splitlines()):
                if old != new:
                    print(f"  there:  {old[:160]}\n  should: {new[:160]}", file=sys.stderr)
                    break
    return 1 if different and settings.check else 0


if __name__ == "__main__":
    sys.exit(main())
