// gyre.h: buffers.
#include <capnp/message.h>
#include <fmt/format.h>
#include <gyre/runtime/c/dlpack.hpp>
#include <gyre/runtime/c/objects.hpp>

#include <cstddef>

using namespace gyre;
using namespace gyre::c;

namespace {

using messages::view::ElementType;
static_assert(GYRE_INT8 == int(ElementType::INT8) && GYRE_UINT8 == int(ElementType::UINT8) &&
              GYRE_INT16 == int(ElementType::INT16) && GYRE_UINT16 == int(ElementType::UINT16) &&
              GYRE_INT32 == int(ElementType::INT32) && GYRE_UINT32 == int(ElementType::UINT32) &&
              GYRE_INT64 == int(ElementType::INT64) && GYRE_UINT64 == int(ElementType::UINT64) &&
              GYRE_FLOAT32 == int(ElementType::FLOAT32) && GYRE_FLOAT64 == int(ElementType::FLOAT64));
static_assert(GYRE_MEMORY_DEVICE == int(MemoryKind::device) &&
              GYRE_MEMORY_PINNED == int(MemoryKind::pinned) &&
              GYRE_MEMORY_UNIFIED == int(MemoryKind::unified) &&
              GYRE_MEMORY_IMPORTED == int(MemoryKind::imported) && memory_kinds == 4);
static_assert(GYRE_READ_WRITE == int(BufferAccess::read_write) &&
              GYRE_READ_ONLY == int(BufferAccess::read_only));
static_assert(sizeof(gyre_buffer_handle) == 8 * messages::view::BufferHandle::data_words &&
                  offsetof(gyre_buffer_handle, element) == 12 && offsetof(gyre_buffer_handle, length) == 16,
              "it is the struct's data section");

// By gyre_element.
constexpr uint64_t bytes_of_element[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

// What gyre_import says keeps the memory. The caller's until the import is done.
struct ImportOwner {
  gyre_release_owner release;
  void* owner;
  bool imported = false;

  ~ImportOwner() {
    if (imported && release != nullptr) release(owner);
  }
};

template <class Managed>
Managed* as_dlpack(BufferObject& buffer) {
  return dlpack::Export<Managed>::make(buffer.owner.export_memory(), buffer.element, buffer.element_bytes,
                                       buffer.owner.bytes() / buffer.element_bytes,
                                       buffer.owner.device().value_or(-1));
}

CopyObject parts_of(Future<void> copy) {
  auto [core, state] = std::move(copy).parts();
  return {std::move(core), std::move(state)};
}

// `begin(owner)` begins the copy and returns its Future.
template <class Begin>
gyre_status begin_copy(const char* doing, gyre_buffer buffer, const void* bytes, uint64_t size,
                       gyre_copy* copy, Begin&& begin) {
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (bytes == nullptr && size != 0) return invalid(doing, "bytes is null, and size is not 0");
    if (copy == nullptr) return invalid(doing, "copy is null");
    const CopyObject begun = parts_of(begin(used->owner));
    try {
      *copy = Copies::table().add(CopyObject(begun));
    } catch (...) {
      (void)begun.copy->wait_until(INT64_MAX);  // the caller frees the memory once it has the error
      throw;
    }
    return GYRE_OK;
  });
}

}  // namespace

gyre_status gyre_buffer_create(gyre_runtime runtime, gyre_memory memory, gyre_element element,
                               uint64_t elements, gyre_buffer* buffer) {
  const char* const doing = "gyre_buffer_create";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    if (memory < GYRE_MEMORY_DEVICE || memory > GYRE_MEMORY_UNIFIED) {
      return invalid(
          doing, fmt::format("memory is {}; give GYRE_MEMORY_DEVICE, _PINNED or _UNIFIED (0 to 2)", memory));
    }
    if (element < GYRE_INT8 || element > GYRE_FLOAT64) {
      return invalid(doing, fmt::format("element is {}; give GYRE_INT8 to GYRE_FLOAT64 (1 to 10)", element));
    }
    if (buffer == nullptr) return invalid(doing, "buffer is null");
    const uint64_t bytes = bytes_of_element[element];
    *buffer = BufferObjects::table().add(
        {used->runtime.allocate(MemoryKind(memory), ElementType(element), bytes, elements), element, bytes,
         std::chrono::nanoseconds(used->runtime.options().timeout).count()});
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_import(gyre_runtime runtime, const gyre_import* import, gyre_buffer* buffer) {
  const char* const doing = "gyre_buffer_import";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    gyre_import asked{};
    GYRE_C_TRY(read_struct(doing, "import", import, asked));
    if (asked.element < GYRE_INT8 || asked.element > GYRE_FLOAT64) {
      return invalid(doing,
                     fmt::format("element is {}; give GYRE_INT8 to GYRE_FLOAT64 (1 to 10)", asked.element));
    }
    if (asked.access != GYRE_READ_WRITE && asked.access != GYRE_READ_ONLY) {
      return invalid(
          doing, fmt::format("access is {}; give GYRE_READ_WRITE or GYRE_READ_ONLY (0 or 1)", asked.access));
    }
    if (asked.stream < -1 || asked.stream == 0) {
      return invalid(doing, fmt::format("stream is {}; give a CUstream, 1 or 2 for a default stream, or -1 "
                                        "for none",
                                        asked.stream));
    }
    if (buffer == nullptr) return invalid(doing, "buffer is null");
    const uint64_t bytes = bytes_of_element[asked.element];
    const auto owner = std::make_shared<ImportOwner>(ImportOwner{asked.release, asked.owner});
    *buffer = BufferObjects::table().add(
        {used->runtime.import_memory(asked.elements, ElementType(asked.element), bytes, asked.count, owner,
                                     BufferAccess(asked.access), asked.stream),
         asked.element, bytes, std::chrono::nanoseconds(used->runtime.options().timeout).count()});
    owner->imported = true;
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_get_info(gyre_buffer buffer, gyre_buffer_info* info) {
  const char* const doing = "gyre_buffer_get_info";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    GYRE_C_TRY(check_struct(doing, "info", info, sizeof *info));
    const uint64_t bytes = used->owner.bytes();
    write_struct(
        info, gyre_buffer_info{0, gyre_memory(used->owner.kind()), used->element, bytes / used->element_bytes,
                               bytes, used->owner.device().value_or(-1), 0});
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_get_handle(gyre_buffer buffer, uint64_t length, gyre_buffer_handle* handle) {
  const char* const doing = "gyre_buffer_get_handle";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (handle == nullptr) return invalid(doing, "handle is null");
    const uint64_t elements = used->owner.bytes() / used->element_bytes;
    if (length > elements) {
      return invalid(doing, fmt::format("length is {}, and the buffer has {} elements", length, elements));
    }
    capnp::word words[8] = {};
    capnp::MallocMessageBuilder message(kj::arrayPtr(words, 8));
    auto built = message.initRoot<messages::BufferHandle>();
    used->owner.set(built, length == 0 ? elements : length);
    *handle = {built.getIndex(), built.getGeneration(), built.getRuntime(), uint16_t(built.getElement()), 0,
               built.getLength()};
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_write(gyre_buffer buffer, uint64_t offset, const void* bytes, uint64_t size) {
  const char* const doing = "gyre_buffer_write";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (bytes == nullptr && size != 0) return invalid(doing, "bytes is null, and size is not 0");
    used->owner.copy_in(offset, bytes, size);
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_read(gyre_buffer buffer, uint64_t offset, void* bytes, uint64_t size) {
  const char* const doing = "gyre_buffer_read";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (bytes == nullptr && size != 0) return invalid(doing, "bytes is null, and size is not 0");
    used->owner.copy_out(offset, bytes, size);
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_write_async(gyre_buffer buffer, uint64_t offset, const void* bytes, uint64_t size,
                                    gyre_copy* copy) {
  return begin_copy("gyre_buffer_write_async", buffer, bytes, size, copy,
                    [&](auto& owner) { return owner.begin_copy_in(offset, bytes, size); });
}

gyre_status gyre_buffer_read_async(gyre_buffer buffer, uint64_t offset, void* bytes, uint64_t size,
                                   gyre_copy* copy) {
  return begin_copy("gyre_buffer_read_async", buffer, bytes, size, copy,
                    [&](auto& owner) { return owner.begin_copy_out(offset, bytes, size); });
}

gyre_status gyre_copy_wait(gyre_copy copy, int64_t timeout_ns) {
  const char* const doing = "gyre_copy_wait";
  return guarded(doing, [&]() -> gyre_status {
    Use<Copies> used;
    GYRE_C_TRY(use<Copies>(doing, copy, used));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, -1, ns));
    const int64_t until_ns =
        ns == -1 ? INT64_MAX : detail::after(detail::host_now_ns(), std::chrono::nanoseconds(ns));
    if (used->copy->wait_until(until_ns)) return status_of(used->copy->outcome());
    return refuse(GYRE_NOT_READY,
                  fmt::format("{}: the copy is not done within {} ns; wait longer, or again", doing, ns));
  });
}

gyre_status gyre_copy_notify(gyre_copy copy, gyre_copy_done done, void* context) {
  const char* const doing = "gyre_copy_notify";
  return guarded(doing, [&]() -> gyre_status {
    Use<Copies> used;
    GYRE_C_TRY(use<Copies>(doing, copy, used));
    if (done == nullptr) return invalid(doing, "done is null");
    const auto call = [done, context](const Result<void>& outcome) { done(context, status_of(outcome)); };
    if (used->copy->when_done(*used->core, call)) return GYRE_OK;
    return refuse(GYRE_BUSY,
                  fmt::format("{}: the copy has such a call already; wait by gyre_copy_wait", doing));
  });
}

gyre_status gyre_copy_release(gyre_copy copy) { return release<Copies>("gyre_copy_release", copy); }

gyre_status gyre_buffer_view(gyre_buffer buffer, int64_t timeout_ns, void** elements) {
  const char* const doing = "gyre_buffer_view";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (elements == nullptr) return invalid(doing, "elements is null");
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, used->timeout_ns, ns));
    const bool unified = used->owner.kind() == MemoryKind::unified;
    void* const host = used->owner.host(unified ? MemoryKind::unified : MemoryKind::pinned);
    if (unified) GYRE_C_TRY(status_of(used->owner.wait_for_workers(std::chrono::nanoseconds(ns))));
    *elements = host;
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_export(gyre_buffer buffer, gyre_export* exported, void** elements, int32_t* device) {
  const char* const doing = "gyre_buffer_export";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (exported == nullptr) return invalid(doing, "exported is null");
    if (elements == nullptr) return invalid(doing, "elements is null");
    std::shared_ptr<void> memory = used->owner.export_memory();
    void* const there = memory.get();
    *exported = Exports::table().add(std::move(memory));
    *elements = there;
    if (device != nullptr) *device = used->owner.device().value_or(-1);
    return GYRE_OK;
  });
}

gyre_status gyre_export_release(gyre_export exported) {
  return release<Exports>("gyre_export_release", exported);
}

gyre_status gyre_buffer_to_dlpack(gyre_buffer buffer, int32_t version, void** tensor) {
  const char* const doing = "gyre_buffer_to_dlpack";
  return guarded(doing, [&]() -> gyre_status {
    Use<BufferObjects> used;
    GYRE_C_TRY(use<BufferObjects>(doing, buffer, used));
    if (version != 0 && version != 1) {
      return invalid(doing, fmt::format("version is {}; give 0 for a DLManagedTensor, 1 for a "
                                        "DLManagedTensorVersioned",
                                        version));
    }
    if (tensor == nullptr) return invalid(doing, "tensor is null");
    if (version == 0) {
      *tensor = as_dlpack<dlpack::DLManagedTensor>(*used);
    } else {
      auto* const made = as_dlpack<dlpack::DLManagedTensorVersioned>(*used);
      made->major = dlpack::major;
      made->minor = dlpack::minor;
      *tensor = made;
    }
    return GYRE_OK;
  });
}

gyre_status gyre_buffer_release(gyre_buffer buffer) {
  return release<BufferObjects>("gyre_buffer_release", buffer);
}
