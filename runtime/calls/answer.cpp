#include <gyre/runtime/calls/answer.hpp>

namespace gyre::detail {

const capnp::AnyPointer::Reader& Answer::root() {
  if (!in_block_) clear_behind_body();
  if (!readable_) {
    root_pointer_ = 0;
    static constexpr capnp::word null_root{};
    if (in_block_ && body_bytes_ == 0) {  // the official library finds no root in 0 words
      reader_.emplace(&null_root, 1);
    } else {
      const uint64_t bytes = in_block_ ? body_bytes_ : place_bytes_ - sizeof(Envelope);
      reader_.emplace(words(), bytes / sizeof(capnp::word));
    }
    root_ = reader_->getRoot<capnp::AnyPointer>();
    readable_ = true;
  }
  return root_;
}

}  // namespace gyre::detail
