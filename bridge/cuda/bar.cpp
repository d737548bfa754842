#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/errors/error.hpp>

#if defined(GYRE_WITH_VULKAN)
#include <gyre/bridge/cuda/vulkan.hpp>

#include <cstdio>
#include <cstring>
#endif

namespace gyre::cuda {

#if defined(GYRE_WITH_VULKAN)

namespace {

constexpr uint64_t granule = uint64_t(2) << 20;  // a large page: what Vulkan and CUDA both allocate in

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

// The ways of storing lines that a processor has.
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

// Another runtime may have opened it for another GPU.
std::shared_ptr<VulkanDevice> with_device(std::shared_ptr<VulkanDevice> opened, const DeviceUuid& uuid) {
  if (opened->open(uuid)) return opened;
  auto other = std::make_shared<VulkanDevice>();
  other->open(uuid);
  return other;
}

}  // namespace

std::shared_ptr<VulkanDevice> BarMemory::open() {
  std::shared_ptr<VulkanDevice> device = VulkanDevice::shared();
  device->open_ahead();
  return device;
}

BarMemory::BarMemory(const DeviceUuid& device, uint64_t bytes)
    : BarMemory(VulkanDevice::shared(), device, bytes) {}

BarMemory::BarMemory(std::shared_ptr<VulkanDevice> opened, const DeviceUuid& device, uint64_t bytes)
    : bytes_((bytes + granule - 1) / granule * granule),
      store_(HostMemory::best_line_store()),
      vulkan_(std::make_unique<VulkanMemory>(with_device(std::move(opened), device), bytes_)) {}

BarMemory::~BarMemory() = default;

Descriptor BarMemory::export_memory() const { return Descriptor(vulkan_->export_descriptor()); }

void BarMemory::test(const std::function<void(LineStore)>& find) {
  for (const LineStore how : stores_of(store_)) {
    store_lines_for_test(vulkan_->host_address(), bytes_, how);
    find(how);
  }
  touch_pages(vulkan_->host_address(), bytes_, store_);
}

BarInbound BarMemory::inbound() const { return {vulkan_->host_address(), store_}; }

uint64_t BarMemory::heap_bytes() const { return vulkan_->heap_bytes(); }

void BarMemory::leak() { vulkan_->leak(); }

BarMapping::BarMapping(const Context& context, Descriptor memory, uint64_t bytes)
    : context_(context), bytes_(bytes) {
  const Context::Current current(context_);
  try {
    import(std::move(memory));
    zero();
  } catch (...) {
    free();
    throw;
  }
}

BarMapping::~BarMapping() {
  if (!leaked_) free();
}

// The descriptor is CUDA's once it has taken it.
void BarMapping::import(Descriptor memory) {
  const Driver& driver = context_.driver();
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle{};
  handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  handle.handle.fd = memory.get();
  handle.size = bytes_;
  driver.check(driver.cuImportExternalMemory(&external_, &handle),
               "importing device memory from Vulkan into CUDA");
  (void)memory.release();
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  buffer.size = bytes_;
  driver.check(driver.cuExternalMemoryGetMappedBuffer(&device_, external_, &buffer),
               "mapping device memory from Vulkan for CUDA");
}

// Done when it returns: the copies back are behind it on the default stream, and wait for it.
void BarMapping::zero() {
  const Driver& driver = context_.driver();
  driver.check(driver.cuMemsetD8Async(device_, 0, bytes_, nullptr), "zeroing device memory from Vulkan");
  for (const uint64_t line : TestLines(bytes_).stored) expect(line, Line{}, "zeroed by CUDA");
}

// On the default stream, behind zero(); done when it returns.
void BarMapping::expect(uint64_t line, const Line& expected, const std::string& doing) {
  Line found;
  const Driver& driver = context_.driver();
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

// At the start, at the end, and between lines that are not written.
void BarMapping::expect_test_lines(LineStore how) {
  const TestLines lines(bytes_);
  const Context::Current current(context_);
  for (const uint64_t line : lines.stored)
    expect(line, pattern(line, how), std::string("stored ") + name(how));
  for (const uint64_t line : lines.beside)
    expect(line, Line{}, std::string("beside one stored ") + name(how));
  zero();
}

// Where the context is dead CUDA's calls fail, and its mapping went with it.
void BarMapping::free() noexcept {
  const Context::Current current(context_, std::nothrow);
  const Driver& driver = context_.driver();
  if (device_ != 0)
    driver.check_or_log(driver.cuMemFree(device_), "unmapping device memory from Vulkan (cuMemFree)");
  if (external_ != nullptr) {
    driver.check_or_log(driver.cuDestroyExternalMemory(external_),
                        "giving up device memory from Vulkan (cuDestroyExternalMemory)");
  }
}

BarMemoryHere::BarMemoryHere(const Context& context, uint64_t bytes)
    : memory(uuid_of(context.driver(), context.device()), bytes),
      mapping(context, memory.export_memory(), memory.bytes()) {
  memory.test([this](LineStore how) { mapping.expect_test_lines(how); });
}

#else

class VulkanDevice {};
class VulkanMemory {};

std::shared_ptr<VulkanDevice> BarMemory::open() {
  throw EngineUnavailable(
      "this Gyre was built without Vulkan's headers; install them (Debian: libvulkan-dev) and build again");
}
BarMemory::BarMemory(std::shared_ptr<VulkanDevice>, const DeviceUuid&, uint64_t bytes)
    : bytes_(bytes), store_(LineStore::four_packets) {}
BarMemory::BarMemory(const DeviceUuid& device, uint64_t bytes) : BarMemory(open(), device, bytes) {}
BarMemory::~BarMemory() = default;
Descriptor BarMemory::export_memory() const { return Descriptor(); }
void BarMemory::test(const std::function<void(LineStore)>&) {}
BarInbound BarMemory::inbound() const { return {}; }
uint64_t BarMemory::heap_bytes() const { return 0; }
void BarMemory::leak() {}

BarMapping::BarMapping(const Context& context, Descriptor, uint64_t bytes)
    : context_(context), bytes_(bytes) {
  throw EngineUnavailable("this Gyre was built without Vulkan's headers");
}
BarMapping::~BarMapping() = default;
void BarMapping::expect_test_lines(LineStore) {}

BarMemoryHere::BarMemoryHere(const Context& context, uint64_t bytes)
    : memory(uuid_of(context.driver(), context.device()), bytes),
      mapping(context, memory.export_memory(), memory.bytes()) {}

#endif

}  // namespace gyre::cuda
