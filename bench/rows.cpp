#include "rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::bench {

namespace {

double ratio(uint64_t Summary::*figure, const Row& row, const Row* to) {
  if (to == nullptr || to->summary.*figure == 0) return 0;
  return double(row.summary.*figure) / double(to->summary.*figure);
}

std::string text_of(double ratio) { return ratio == 0 ? "-" : fmt::format("{:.2f}", ratio); }

// The index of the median round by p50; of two in the middle the slower.
size_t median_round(const std::vector<Summary>& rounds) {
  std::vector<size_t> order(rounds.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rounds[a].p50_ns < rounds[b].p50_ns; });
  return order[order.size() / 2];
}

tools::Json json_of(const Summary& summary) {
  return {{"p50_ns", summary.p50_ns},
          {"p99_ns", summary.p99_ns},
          {"p999_ns", summary.p999_ns},
          {"max_ns", summary.max_ns},
          {"mean_ns", summary.mean_ns},
          {"messages", summary.messages},
          {"messages_per_s", summary.messages_per_s()}};
}

}  // namespace

void Rows::add(Row row) {
  if (row.summary.messages == 0) return;
  for (Row& known : rows_) {
    if (known.name != row.name || known.size != row.size || known.random_gaps != row.random_gaps ||
        known.workers != row.workers) {
      continue;
    }
    known.rounds.push_back(row.summary);
    known.cpus.insert(known.cpus.end(), row.cpus.begin(), row.cpus.end());
    known.histogram.merge(row.histogram);
    known.summary = known.rounds[median_round(known.rounds)];
    return;
  }
  rows_.push_back(std::move(row));
}

const Row* Rows::find(const std::string& name, const Row& row) const {
  const Row* found = nullptr;
  int found_likeness = -1;
  for (const Row& candidate : rows_) {
    if (candidate.name != name || candidate.random_gaps != row.random_gaps) continue;
    const int likeness = 2 * (candidate.workers == row.workers) + (candidate.size == row.size);
    if (likeness > found_likeness) {
      found = &candidate;
      found_likeness = likeness;
    }
  }
  return found;
}

const Row* Rows::gyre_row(const Row& row) const {
  return find(row.work == Work::vector_add ? "gyre vector-add" : "gyre", row);
}

void Rows::print(std::FILE* out) const {
  fmt::print(out,
             "\n{:<19} {:<9} {:>6} {:<7} {:>7} {:>8} {:>8} {:>9} {:>10} {:>9} {:<7} {:>15} {:>15} {:>9}\n",
             "row", "transport", "bytes", "gaps", "workers", "p50 ns", "p99 ns", "p99.9 ns", "max ns",
             "messages", "wait", "p50/" + reference_, "p99.9/" + reference_, "p50/gyre");
  for (const Row& row : rows_) {
    const Summary& summary = row.summary;
    const Row* const reference = find(reference_, row);
    fmt::print(
        out, "{:<19} {:<9} {:>6} {:<7} {:>7} {:>8} {:>8} {:>9} {:>10} {:>9} {:<7} {:>15} {:>15} {:>9}{}\n",
        row.name, row.transport, row.size, row.random_gaps ? "random" : "none", row.workers, summary.p50_ns,
        summary.p99_ns, summary.p999_ns, summary.max_ns, summary.messages, row.wait,
        text_of(ratio(&Summary::p50_ns, row, reference)), text_of(ratio(&Summary::p999_ns, row, reference)),
        text_of(ratio(&Summary::p50_ns, row, gyre_row(row))), row.remark.empty() ? "" : "  " + row.remark);
  }
}

std::string Rows::speed_of_cpus() const {
  uint64_t least_ns = UINT64_MAX, most_ns = 0;
  size_t rounds = 0, slow = 0;
  const auto for_each_round = [this](auto&& visit) {
    for (const Row& row : rows_) {
      for (const RoundCpu& cpu : row.cpus)
        visit(std::max(cpu.arithmetic_before_ns, cpu.arithmetic_after_ns),
              std::min(cpu.arithmetic_before_ns, cpu.arithmetic_after_ns));
    }
  };
  for_each_round([&](uint64_t slower_ns, uint64_t quicker_ns) {
    least_ns = std::min(least_ns, quicker_ns);
    most_ns = std::max(most_ns, slower_ns);
    ++rounds;
  });
  for_each_round([&](uint64_t slower_ns, uint64_t) { slow += slower_ns > least_ns + least_ns / 4; });
  if (rounds == 0) return "no round was measured on a CPU that was chosen for it";
  return fmt::format(
      "CPUs: before and after the {} rounds a piece of arithmetic took {} to {} ns; in {} of them more than "
      "1.25 times {}: most likely others worked on the same core then",
      rounds, least_ns, most_ns, slow, least_ns);
}

tools::Json Rows::to_json() const {
  tools::Json document = tools::Json::array();
  for (const Row& row : rows_) {
    tools::Json entry = json_of(row.summary);
    entry.update({{"name", row.name},
                  {"transport", row.transport},
                  {"size", row.size},
                  {"gaps", row.random_gaps ? "random" : "none"},
                  {"work", name(row.work)},
                  {"workers", row.workers},
                  {"wait", row.wait},
                  {"checked", row.checked},
                  {"histogram_ns", row.histogram.text()}});
    if (const Row* const reference = find(reference_, row)) {
      entry["p50_ratio"] = ratio(&Summary::p50_ns, row, reference);
      entry["p999_ratio"] = ratio(&Summary::p999_ns, row, reference);
    }
    if (const Row* const gyre = gyre_row(row)) entry["p50_to_gyre"] = ratio(&Summary::p50_ns, row, gyre);
    if (!row.remark.empty()) entry["remark"] = row.remark;
    for (size_t i = 0; i < row.rounds.size(); ++i) {
      tools::Json round = json_of(row.rounds[i]);
      if (i < row.cpus.size()) {
        round["cpu"] = row.cpus[i].cpu;
        round["baseline_cpu"] = row.cpus[i].baseline_cpu;
        round["arithmetic_ns"] = {row.cpus[i].arithmetic_before_ns, row.cpus[i].arithmetic_after_ns};
      }
      entry["rounds"].push_back(std::move(round));
    }
    document.push_back(std::move(entry));
  }
  return document;
}

bool measure_interleaved(Rows& rows, uint32_t rounds, const std::vector<std::function<Row()>>& cases) {
  for (uint32_t round = 0; round < rounds; ++round) {
    for (const auto& measure_case : cases) {
      rows.add(measure_case());
      if (tools::interrupt_requested()) return false;
    }
  }
  return true;
}

}  // namespace gyre::bench
