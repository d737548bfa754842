// What gyre-bench views times: a list of 100 floats read from one message and written to another, by views
// and by plain structs. One text for g++, clang and NVRTC.
#pragma once

#include <gyre/device/parallel.hpp>
#include <gyre/messages/vector_add.view.hpp>

namespace gyre::bench {

inline constexpr uint32_t views_elements = 100;

/// What people would send without views: the same contents as plain structs, whose layout both sides must get
/// right.
struct PlainRequest {
  uint32_t operation;
  uint32_t size;
  float a[views_elements];
};
struct PlainResponse {
  uint32_t success;
  uint32_t size;
  float result[views_elements];
};

enum class ViewsWork : uint32_t { plain_struct, views };

/// One message: reads `request`, writes `response`, which is zeroed; returns the bytes written.
template <ViewsWork work>
GYRE_DEVICE uint32_t do_views_work(const Context& ctx, const void* request, uint32_t request_bytes,
                                   void* response, uint32_t response_capacity);

template <>
GYRE_DEVICE inline uint32_t do_views_work<ViewsWork::plain_struct>(const Context& ctx, const void* request,
                                                                   uint32_t, void* response, uint32_t) {
  const auto* const in = static_cast<const PlainRequest*>(request);
  auto* const out = static_cast<PlainResponse*>(response);
  const uint32_t size = in->size <= views_elements ? in->size : 0;
  for (uint32_t i = ctx.rank(); i < size; i += ctx.size()) out->result[i] = in->a[i];
  out->size = size;
  out->success = in->operation == 0;
  return sizeof(PlainResponse);
}

template <>
GYRE_DEVICE inline uint32_t do_views_work<ViewsWork::views>(const Context& ctx, const void* request,
                                                            uint32_t request_bytes, void* response,
                                                            uint32_t response_capacity) {
  using Request = messages::view::VectorAddRequest;
  using Response = messages::view::VectorAddResponse;
  wire::Message message(request, request_bytes);
  wire::Body body(response, response_capacity);
  Request::Reader in(message.root(Request::type_id));
  Response::Builder out(body.init_root(Response::data_words, Response::pointers));
  const auto a = in.getA();
  copy(ctx, a, out.initResult(a.size()));
  out.setProcessed(a.size());
  out.setSuccess(in.getOperation() == messages::view::Operation::ADD && !message.failed());
  return body.used_bytes();
}

}  // namespace gyre::bench
