// The table of round-trip rows, and its JSON.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "json.hpp"
#include "measure.hpp"

namespace gyre::bench {

/// The rows of one run, each measured once a round.
class Rows {
 public:
  /// `reference`: the name of the row that ratios are to.
  explicit Rows(std::string reference = {}) : reference_(std::move(reference)) {}

  /// Adds a round's row: to the row of the same name, size, gaps and workers, or as a new one. Rows without
  /// messages were interrupted and are left out.
  void add(Row row);
  const std::vector<Row>& all() const { return rows_; }
  const std::string& reference() const { return reference_; }
  void set_reference(std::string reference) { reference_ = std::move(reference); }

  /// The row that `row` is compared with: of that name and the same gaps, and if there are several of the
  /// same workers, then of the same size. Null where there is none.
  const Row* find(const std::string& name, const Row& row) const;
  /// Gyre's row of the same work.
  const Row* gyre_row(const Row& row) const;

  void print(std::FILE* out) const;
  /// In how many of the rounds whose CPUs were chosen these were not as quick as the quickest of all these
  /// rounds throughout: a line. Where no CPU ever was quick it cannot know.
  std::string speed_of_cpus() const;
  tools::Json to_json() const;

 private:
  std::string reference_;
  std::vector<Row> rows_;
};

/// Calls the cases one after the other, `rounds` times over, and adds what it returns, until it is
/// interrupted. False where it was.
bool measure_interleaved(Rows& rows, uint32_t rounds, const std::vector<std::function<Row()>>& cases);

}  // namespace gyre::bench
