#include <gyre/runtime/calls/slots.hpp>

#include <new>

namespace gyre::detail {

namespace {

size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Slots::Slots(uint32_t count, uint32_t body_capacity)
    : count_(count),
      pages_((count + SlotPage::count - 1) / SlotPage::count),
      slots_(pages_.data()->slots.data()) {
  const uint32_t place_bytes = groups_for(body_capacity) * group_bytes;
  const size_t stride = whole(place_bytes, 128);
  // The places of a page of slots lie in pages of their own, as the slots do.
  const size_t bytes_of_page = whole(SlotPage::count * stride, sizeof(SlotPage));
  places_.reset(static_cast<std::byte*>(std::calloc(pages_.size() + 1, bytes_of_page)));
  if (places_ == nullptr) throw std::bad_alloc();
  auto* const first =
      reinterpret_cast<std::byte*>(whole(reinterpret_cast<uintptr_t>(places_.get()), sizeof(SlotPage)));
  for (uint32_t i = 0; i < count; ++i) {
    slots_[i].answer.use_place(first + i / SlotPage::count * bytes_of_page + i % SlotPage::count * stride,
                               place_bytes);
  }
}

}  // namespace gyre::detail
