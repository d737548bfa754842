#include <gyre/runtime/calls/answer.hpp>

namespace gyre::detail {

const capnp::AnyPointer::Reader& Answer::root() {
  if (!in_block_) clear_behind_body();
  if (!readable_) {
    root_pointer_ = 0;
    const uint64_t bytes = in_block_ ? body_bytes_ : place_bytes_ - sizeof(Envelope);
    reader_.emplace(words(), bytes / sizeof(capnp::word));
    root_ = reader_->getRoot<capnp::AnyPointer>();
    readable_ = true;
  }
  return root_;
}

}  // namespace gyre::detail
