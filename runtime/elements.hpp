// Large lists of numbers in messages, copied once and by several threads.
#pragma once

#include <capnp/any.h>
#include <capnp/list.h>
#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/memory/scratch.hpp>

#include <cstring>
#include <span>
#include <type_traits>

namespace gyre {

namespace detail {

template <class List>
using ElementOf = std::remove_cvref_t<decltype(std::declval<const List&>()[0])>;

/// Throws Error: the list and the span differ in length.
[[noreturn]] void refuse_elements(const char* doing, size_t list, size_t span);

template <class T, class List>
void check_elements(const List& list, size_t elements, const char* doing) {
  static_assert(std::is_same_v<ElementOf<List>, T> && std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                "a list of integers, float or double, and a span of that type");
  if (list.size() == elements) return;
  refuse_elements(doing, list.size(), elements);
}

/// Copies as std::memcpy does; large blocks by several threads.
void copy_elements(void* to, const void* from, size_t bytes);

}  // namespace detail

/// Sets all elements of a list of numbers while a message is built for Client::ask or tell.
///
/// A large list is copied when the message is sent, once, from `from` to where the worker reads it; until
/// then its elements are zero. Leave the list alone afterwards: do not set it again, and do not disown it.
/// @param list  a List(Int8) … List(Float64) that the fill function has made
/// @param from  as many elements; must stay as it is until ask or tell has returned
/// @throws Error  if the lengths differ
template <class ListBuilder, class T>
void set_elements(ListBuilder list, std::span<T> from) {
  const auto reader = list.asReader();
  detail::check_elements<std::remove_const_t<T>>(reader, from.size(), "setting");
  if (from.empty()) return;
  const auto bytes = capnp::toAny(reader).getRawBytes();
  auto* const place = const_cast<kj::byte*>(bytes.begin());
  if (!detail::Scratch::of_this_thread().copy_later(place, from.data(), from.size_bytes()))
    std::memcpy(place, from.data(), from.size_bytes());
}

/// Copies all elements of a list of numbers out of a message, large lists by several threads.
/// @param to  as many elements
/// @throws Error  if the lengths differ
template <class ListReader, class T>
void get_elements(const ListReader& list, std::span<T> to) {
  detail::check_elements<T>(list, to.size(), "getting");
  if (to.empty()) return;
  detail::copy_elements(to.data(), capnp::toAny(list).getRawBytes().begin(), to.size_bytes());
}

}  // namespace gyre
