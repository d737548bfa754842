// Large data in one direction and in both: Gyre's copies of buffers and its messages beside plain copies.
#pragma once

#include <gyre/runtime/options.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "json.hpp"

namespace gyre::bench {

struct BulkPlan {
  Options options;
  std::vector<uint64_t> bytes;
  uint32_t depth = 4;        ///< messages in flight
  uint64_t total_bytes = 0;  ///< a direction of a row moves in a round, about
  uint32_t rounds = 1;
  bool arena_given = false;  ///< options.arena_bytes is to be used
};

/// One row and the plain copies beside it.
struct BulkRow {
  std::string name;   ///< of Gyre's row, for example "write, pinned"
  std::string plain;  ///< of the plain one beside it
  uint64_t bytes = 0;
  uint64_t copies = 0;           ///< a round
  uint32_t directions = 1;       ///< each copy moves so many times `bytes`
  std::vector<double> gb_per_s;  ///< of each round
  std::vector<double> plain_gb_per_s;

  /// Medians over the rounds; of two in the middle the lower.
  double median() const;
  double plain_median() const;
  /// The median of the rounds' own ratios.
  double ratio() const;
};

/// Measures every row in every round: first the plain copies, while no worker lives, then Gyre's in one
/// launch. Every round checks what arrived. Throws Error. Rows without a round: interrupted.
std::vector<BulkRow> measure_bulk(const BulkPlan& plan);

void print(std::FILE* out, const std::vector<BulkRow>& rows);
/// Two rows each: Gyre's, and the plain one with rate_ratio 1.
void add_to(tools::Json& json_rows, const std::vector<BulkRow>& rows);

}  // namespace gyre::bench
