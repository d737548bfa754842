#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/errors/error.hpp>

#if defined(GYRE_WITH_VULKAN)
#include <unistd.h>
#include <gyre/bridge/cuda/vulkan.hpp>

#include <cstdio>
#include <cstring>
#endif

namespace gyre::cuda {

#if defined(GYRE_WITH_VULKAN)

namespace {

constexpr uint64_t granule = uint64_t(2) << 20;  // a large page: what Vulkan and CUDA both allocate in

VulkanMemory::Uuid as_vulkan_has_it(const CUuuid& uuid) {
  VulkanMemory::Uuid bytes;
  std::memcpy(bytes.data(), uuid.bytes, bytes.size());
  return bytes;
}

const char* name(LineStore how) {
  return how == LineStore::movdir64b ? "by MOVDIR64B" : "by four 16-byte stores";
}

// Another for every line, every packet of it, and each way to store it.
Line pattern(uint64_t line, LineStore how) {
  Line made;
  for (uint32_t k = 0; k < Line::size; ++k) {
    const uint32_t seed = (uint32_t(line) * Line::size + k) * 2654435761u + uint32_t(how) + 1;
    made.packets[k] = {{seed, ~seed, seed ^ 0x5a5a5a5au}, seed | 1};
  }
  return made;
}

struct TestLines {
  explicit TestLines(uint64_t bytes) {
    const uint64_t last = bytes / sizeof(Line) - 1, middle = last / 2 | 1;
    stored = {0, 1, middle, last};
    beside = {2, middle - 1, middle + 1, last - 1};
  }
  std::array<uint64_t, 4> stored, beside;
};

std::vector<LineStore> stores_of(LineStore best) {
  if (best == LineStore::movdir64b) return {LineStore::four_packets, LineStore::movdir64b};
  return {LineStore::four_packets};
}

void store_lines_for_test(void* host, uint64_t bytes, LineStore how) {
  Packet* const cells = static_cast<Packet*>(host);
  for (const uint64_t line : TestLines(bytes).stored) {
    HostMemory::store_line(how, cells + line * Line::size, pattern(line, how));
  }
  HostMemory::store_fence();
}

// Each page once, and nothing but zeros: no message is to wait until the host has mapped a page.
void touch_pages(void* host, uint64_t bytes, LineStore store) {
  Packet* const cells = static_cast<Packet*>(host);
  for (uint64_t at = 0; at < bytes; at += 4096) {
    HostMemory::store_line(store, cells + at / sizeof(Packet), Line{});
  }
  HostMemory::store_fence();
}

}  // namespace

BarMemory::BarMemory(const CUuuid& device, uint64_t bytes)
    : bytes_((bytes + granule - 1) / granule * granule),
      store_(HostMemory::best_line_store()),
      vulkan_(std::make_unique<VulkanMemory>(as_vulkan_has_it(device), bytes_)) {}

BarMemory::BarMemory(const Context& context, uint64_t bytes)
    : BarMemory(uuid_of(context.driver(), context.device()), bytes) {
  attach(context);
}

void BarMemory::attach(const Context& context) {
  context_ = &context;
  const Context::Current current(context);
  import();
  test();
  touch();
}

void BarMemory::attach_for_other(const Context& context) {
  context_ = &context;
  const Context::Current current(context);
  import();
  zero();
}

// The descriptor is CUDA's once it has taken it.
void BarMemory::import() {
  const Driver& driver = context_->driver();
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle{};
  handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  handle.handle.fd = vulkan_->export_descriptor();
  handle.size = bytes_;
  const CUresult imported = driver.cuImportExternalMemory(&external_, &handle);
  if (imported != CUDA_SUCCESS) close(handle.handle.fd);
  driver.check(imported, "importing device memory from Vulkan into CUDA");
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  buffer.size = bytes_;
  driver.check(driver.cuExternalMemoryGetMappedBuffer(&device_, external_, &buffer),
               "mapping device memory from Vulkan for CUDA");
}

// Done when it returns: the copies back are behind it on the default stream, and wait for it.
void BarMemory::zero() {
  const Driver& driver = context_->driver();
  driver.check(driver.cuMemsetD8Async(device_, 0, bytes_, nullptr), "zeroing device memory from Vulkan");
  for (const uint64_t line : TestLines(bytes_).stored) expect(line, Line{}, "zeroed by CUDA");
}

// On the default stream, behind zero(); done when it returns.
void BarMemory::expect(uint64_t line, const Line& expected, const std::string& doing) {
  Line found;
  const Driver& driver = context_->driver();
  driver.check(driver.cuMemcpyDtoH(&found, device_ + line * sizeof(Line), sizeof(Line)),
               "reading device memory from Vulkan back");
  if (std::memcmp(&found, &expected, sizeof(Line)) == 0) return;
  uint64_t at = 0, words[2][sizeof(Line) / sizeof(uint64_t)];
  std::memcpy(words[0], &expected, sizeof(Line));
  std::memcpy(words[1], &found, sizeof(Line));
  while (words[0][at] == words[1][at]) ++at;
  char text[160];
  std::snprintf(text, sizeof text, "line %llu, word %llu: %#llx expected, %#llx found",
                static_cast<unsigned long long>(line), static_cast<unsigned long long>(at),
                static_cast<unsigned long long>(words[0][at]), static_cast<unsigned long long>(words[1][at]));
  throw EngineUnavailable(
      "testing device memory that the host writes (BAR1), " + doing + ": " + text +
      "; this machine does not keep what the transport needs, and a message would be lost: please report it");
}

// Tests that the device finds exactly the lines that the host stores, with each LineStore of this processor.
void BarMemory::test() {
  zero();
  for (const LineStore how : stores_of(store_)) {
    store_lines_for_test(vulkan_->host_address(), bytes_, how);
    expect_test_lines(how);
  }
}

// At the start, at the end, and between lines that are not written.
void BarMemory::expect_test_lines(LineStore how) {
  const TestLines lines(bytes_);
  const Context::Current current(*context_);
  for (const uint64_t line : lines.stored)
    expect(line, pattern(line, how), std::string("stored ") + name(how));
  for (const uint64_t line : lines.beside)
    expect(line, Line{}, std::string("beside one stored ") + name(how));
  zero();
}

void BarMemory::touch() { touch_pages(vulkan_->host_address(), bytes_, store_); }

Descriptor BarMemory::export_memory() const { return Descriptor(vulkan_->export_descriptor()); }

uint32_t BarMemory::memory_type() const { return vulkan_->memory_type(); }

ImportedBarMemory::ImportedBarMemory()
    : store_(HostMemory::best_line_store()), opened_(VulkanDevice::shared()) {}

void ImportedBarMemory::map(const Uuid& device, uint64_t bytes, uint32_t memory_type, Descriptor memory) {
  if (!opened_->open(device)) {  // it is open for a runtime on another GPU
    opened_ = std::make_shared<VulkanDevice>();
    opened_->open(device);
  }
  vulkan_ = std::make_unique<VulkanMemory>(std::move(opened_), bytes, memory_type, std::move(memory));
  bytes_ = bytes;
}

ImportedBarMemory::~ImportedBarMemory() = default;

BarInbound ImportedBarMemory::inbound() const { return {vulkan_->host_address(), store_}; }

std::vector<LineStore> ImportedBarMemory::stores() const { return stores_of(store_); }

void ImportedBarMemory::store_test_lines(LineStore how) {
  store_lines_for_test(vulkan_->host_address(), bytes_, how);
}

void ImportedBarMemory::touch() { touch_pages(vulkan_->host_address(), bytes_, store_); }

void ImportedBarMemory::leak() {
  if (opened_) opened_->leak();
  if (vulkan_) vulkan_->leak();
}

BarInbound BarMemory::inbound() const { return {vulkan_->host_address(), store_}; }

uint64_t BarMemory::heap_bytes() const { return vulkan_->heap_bytes(); }

void BarMemory::leak() {
  leaked_ = true;
  vulkan_->leak();
}

BarMemory::~BarMemory() {
  if (!leaked_) free();
}

// Where the context is dead CUDA's calls fail, and its mapping went with it; Vulkan's part goes all the same.
void BarMemory::free() noexcept {
  if (context_ != nullptr) {
    const Context::Current current(*context_, std::nothrow);
    const Driver& driver = context_->driver();
    if (device_ != 0) {
      driver.check_or_log(driver.cuMemFree(device_), "unmapping device memory from Vulkan (cuMemFree)");
    }
    if (external_ != nullptr) {
      driver.check_or_log(driver.cuDestroyExternalMemory(external_),
                          "giving up device memory from Vulkan (cuDestroyExternalMemory)");
    }
  }
  vulkan_.reset();
}

#else

class VulkanDevice {};
class VulkanMemory {};

BarMemory::BarMemory(const CUuuid&, uint64_t bytes) : bytes_(bytes), store_(LineStore::four_packets) {
  throw EngineUnavailable(
      "this Gyre was built without Vulkan's headers; install them (Debian: libvulkan-dev) and build again");
}
BarMemory::BarMemory(const Context& context, uint64_t bytes)
    : BarMemory(uuid_of(context.driver(), context.device()), bytes) {}
void BarMemory::attach(const Context&) {}
void BarMemory::attach_for_other(const Context&) {}
void BarMemory::expect_test_lines(LineStore) {}
Descriptor BarMemory::export_memory() const { return Descriptor(); }
uint32_t BarMemory::memory_type() const { return 0; }
BarMemory::~BarMemory() = default;
BarInbound BarMemory::inbound() const { return {}; }
uint64_t BarMemory::heap_bytes() const { return 0; }
void BarMemory::leak() {}

ImportedBarMemory::ImportedBarMemory() : store_(LineStore::four_packets) {
  throw EngineUnavailable(
      "this Gyre was built without Vulkan's headers; install them (Debian: libvulkan-dev) and build again");
}
ImportedBarMemory::~ImportedBarMemory() = default;
BarInbound ImportedBarMemory::inbound() const { return {}; }
void ImportedBarMemory::map(const Uuid&, uint64_t, uint32_t, Descriptor) {}
std::vector<LineStore> ImportedBarMemory::stores() const { return {}; }
void ImportedBarMemory::store_test_lines(LineStore) {}
void ImportedBarMemory::touch() {}
void ImportedBarMemory::leak() {}

#endif

}  // namespace gyre::cuda
