// FeatureStore: rows of a table in GPU memory, gathered into a reply.
#pragma once

#include <gyre/device/context.hpp>
#include <inference/feature_store.view.hpp>

namespace inference {

/// Holds a table of embeddings by its buffer, most often a tensor of PyTorch's.
struct FeatureStore {
  using Handles = gyre::Handles<view::UseTable, view::LookUp>;

  /// Codes of Failure::code.
  enum Wrong : uint32_t {
    no_width = 1,  ///< the table's rows have no values
    no_such_row,   ///< a row asked for is beyond the table's end
    too_many       ///< the values asked for are more than a list can hold
  };
  static constexpr uint32_t most_values = uint32_t(1) << 28;

  gyre::StoredHandle values;
  uint32_t width = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::UseTable::Reader in, view::TableInUse::Builder out) {
    const gyre::StoredHandle handle(in.getValues());
    const uint32_t columns = in.getWidth();
    if (columns == 0) return ctx.fail(no_width);
    const uint64_t rows = ctx.buffer<const float>(handle, columns).size() / columns;
    if (!ctx.ok()) return;
    if (ctx.rank() == 0) {
      values = handle;
      width = columns;
    }
    out.setRows(rows);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::LookUp::Reader in, view::Embeddings::Builder out) {
    const auto rows = in.getRows();
    const uint32_t columns = width;
    const auto table = ctx.buffer<const float>(values);
    if (table.data() == nullptr) return;  // the reply says why
    if (rows.size() > most_values / columns) return ctx.fail(too_many);
    const auto result = out.initValues(rows.size() * columns);
    const uint64_t rows_there = table.size() / columns;
    for (uint32_t i = ctx.rank(); i < result.size(); i += ctx.size()) {
      const uint32_t row = rows[i / columns];
      if (row >= rows_there) return ctx.fail(no_such_row);
      result.set(i, table[uint64_t(row) * columns + i % columns]);
    }
  }
};

}  // namespace inference
