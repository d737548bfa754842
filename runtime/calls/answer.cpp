#include <gyre/runtime/calls/answer.hpp>

namespace gyre::detail {

const capnp::AnyPointer::Reader& Answer::root() {
  if (!in_block_) clear_behind_body();
  if (!readable_) {
    const uint64_t bytes = in_block_ ? body_bytes_ : place_bytes_ - sizeof(Envelope);
    reader_.emplace(words(), bytes / sizeof(capnp::word));
    root_ = reader_->getRoot<capnp::AnyPointer>();
    readable_ = true;
  }
  return root_;
}

// Cap'n Proto reads whole words of the place, behind the body too: there it must find zeros.
void Answer::clear_behind_body() {
  if (dirty_bytes_ <= body_bytes_) return;
  std::memset(place_ + sizeof(Envelope) + body_bytes_, 0, dirty_bytes_ - body_bytes_);
  dirty_bytes_ = uint32_t(body_bytes_);
}

}  // namespace gyre::detail
