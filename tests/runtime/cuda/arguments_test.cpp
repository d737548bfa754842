// The argument block on a driver of plain functions: one allocation of 4,096 bytes at 0x10000, one pinned at
// 0x90000 that cuMemGetAddressRange does not know, and a kernel whose parameters are those of a table.
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/arguments.hpp>

#include "support/catch.hpp"

using namespace gyre;
using namespace gyre::cuda;

namespace {

constexpr CUdeviceptr allocation = 0x10000, pinned = 0x90000;
constexpr size_t allocated = 4096;
std::vector<size_t> parameters;

CUresult address_range(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  if (address < allocation || address >= allocation + allocated) return CUDA_ERROR_NOT_FOUND;
  *base = allocation;
  *size = allocated;
  return CUDA_SUCCESS;
}
CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  if (address < pinned || address >= pinned + allocated) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) *static_cast<CUdeviceptr*>(data) = pinned;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) *static_cast<size_t*>(data) = allocated;
  return CUDA_SUCCESS;
}
CUresult parameter_info(CUfunction, size_t index, size_t* offset, size_t* size) {
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  *size = parameters[index];
  return CUDA_SUCCESS;
}

Driver driver_with(std::vector<size_t> sizes) {
  parameters = std::move(sizes);
  Driver driver;
  driver.cuMemGetAddressRange = address_range;
  driver.cuPointerGetAttribute = pointer_attribute;
  driver.cuFuncGetParamInfo = parameter_info;
  return driver;
}
std::string problem(const ArgumentBlock& arguments, const Driver& driver) {
  try {
    arguments.check(driver, nullptr, "my::kernel");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}
bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

struct Shape {
  uint32_t rows, columns, layers;
};

}  // namespace

TEST_CASE("the driver is given addresses of values, which stay where they are as more are pushed") {
  ArgumentBlock arguments;
  uint32_t count = 7;
  arguments.push("count", count);
  void* const first = arguments.addresses()[0];
  count = 8;  // the block has a copy
  arguments.push("shape", Shape{3, 4, 5});
  for (int n = 0; n < 100; ++n) arguments.push("more", n);
  arguments.push_pointer("data", allocation, 64);
  REQUIRE(arguments.size() == 103);
  CHECK(arguments.addresses()[0] == first);
  CHECK(*static_cast<uint32_t*>(first) == 7);
  CHECK(static_cast<Shape*>(arguments.addresses()[1])->layers == 5);
  CHECK(*static_cast<int*>(arguments.addresses()[101]) == 99);
  CHECK(*static_cast<CUdeviceptr*>(arguments.addresses()[102]) == allocation);
  const ArgumentBlock moved = std::move(arguments);
  CHECK(moved.size() == 103);
  CHECK(*static_cast<uint32_t*>(first) == 7);
}

TEST_CASE("each argument is described by name, type, size and value") {
  ArgumentBlock arguments;
  arguments.push("count", uint32_t(7));
  arguments.push("shape", Shape{3, 4, 0xabcdef});
  arguments.push("layout", Shape{3, 4, 5}, "3 rows");
  arguments.push_pointer("data", allocation, 64);
  const auto described = arguments.describe();
  REQUIRE(described.size() == 4);
  CHECK(described[0] == "0 count: unsigned int, 4 bytes: 7");
  CHECK(says(described[1], "Shape, 12 bytes: 00000003 00000004 00abcdef"));
  CHECK(says(described[2], "12 bytes: 3 rows"));
  CHECK(described[3] == "3 data: address, 8 bytes: 0x10000, 64 bytes");
}

TEST_CASE("pointers within one live allocation pass, to its last byte, in device and in pinned memory") {
  const Driver driver = driver_with({8, 8, 8, 8});
  ArgumentBlock arguments;
  arguments.push_pointer("all", allocation, allocated);
  arguments.push_pointer("end", allocation + 4095, 1);
  arguments.push_pointer("pinned", pinned + 96, allocated - 96);
  arguments.push_pointer("none", 0, 0);
  CHECK(problem(arguments, driver).empty());
}

TEST_CASE("stale, short and null pointers are refused, all at once, with the numbers") {
  const Driver driver = driver_with({8, 8, 8, 8, 12});
  ArgumentBlock arguments;
  arguments.push_pointer("stale", 0x50000, 16);
  arguments.push_pointer("short", allocation + 4000, 97);
  arguments.push_pointer("huge", allocation + 16, ~uint64_t(0));
  arguments.push_pointer("pinned", pinned, allocated + 1);
  arguments.push("shape", Shape{1, 2, 3});
  arguments.refer_to("null", 0, 16);
  const std::string text = problem(arguments, driver);
  INFO(text);
  CHECK(says(text, "passing arguments to my::kernel"));
  CHECK(says(text, "stale: 0x50000 lies in no live allocation"));
  CHECK(says(text,
             "short: the kernel touches 97 bytes from 0x10fa0, and the allocation at 0x10000 of "
             "4096 bytes has 96 from there"));
  CHECK(says(text, "huge: the kernel touches 18446744073709551615 bytes"));
  CHECK(says(text,
             "pinned: the kernel touches 4097 bytes from 0x90000, and the allocation at 0x90000 "
             "of 4096 bytes has 4096"));
  CHECK(says(text, "null: null, where the kernel touches 16 bytes"));
}

TEST_CASE(
    "number and sizes of the arguments are held against the kernel's parameters, where the driver tells") {
  ArgumentBlock arguments;
  arguments.push("count", uint32_t(7));
  arguments.push("shape", Shape{3, 4, 5});
  CHECK(problem(arguments, driver_with({4, 12})).empty());
  CHECK(says(problem(arguments, driver_with({8, 12})),
             "argument 0, count: unsigned int is 4 bytes, and the kernel's "
             "parameter is 8"));
  CHECK(says(problem(arguments, driver_with({4})), "argument 1, shape: the kernel has no parameter 1"));
  CHECK(says(problem(arguments, driver_with({4, 12, 40})),
             "more parameters than the 2 arguments: one of 40 bytes"));
  Driver old = driver_with({8});
  old.cuFuncGetParamInfo = nullptr;
  CHECK(problem(arguments, old).empty());
}
