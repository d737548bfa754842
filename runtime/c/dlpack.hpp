// DLPack's structs, by which tensors go from one package to another: https://dmlc.github.io/dlpack/latest/.
#pragma once

#include <gyre/runtime/c/gyre.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gyre::c::dlpack {

struct DLTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
/// Of DLPack before 1.0.
struct DLManagedTensor {
  DLTensor tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80);

inline constexpr int32_t on_host = 1, on_cuda = 2;
inline constexpr uint32_t major = 1, minor = 0;

/// A tensor of one dimension, which deletes itself when its consumer calls the deleter.
template <class Managed>
struct Export {
  std::shared_ptr<void> elements;
  int64_t count, stride = 1;
  Managed managed{};

  /// @param device  -1: the host
  static Managed* make(std::shared_ptr<void> elements, gyre_element element, uint64_t element_bytes,
                       uint64_t count, int device) {
    auto* const made = new Export{std::move(elements), int64_t(count)};
    DLTensor& tensor = made->managed.tensor;
    tensor.data = made->elements.get();
    tensor.device_type = device < 0 ? on_host : on_cuda;
    tensor.device_id = device < 0 ? 0 : device;
    tensor.ndim = 1;
    tensor.code = element >= GYRE_FLOAT32 ? 2 : (element - GYRE_INT8) % 2 == 0 ? 0 : 1;  // float, int, uint
    tensor.bits = uint8_t(8 * element_bytes);
    tensor.lanes = 1;
    tensor.shape = &made->count;
    tensor.strides = &made->stride;
    made->managed.manager_ctx = made;
    made->managed.deleter = [](Managed* managed) { delete static_cast<Export*>(managed->manager_ctx); };
    return &made->managed;
  }
};

}  // namespace gyre::c::dlpack
