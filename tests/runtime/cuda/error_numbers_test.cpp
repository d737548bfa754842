// The catalogue's names and numbers against CUDA's own.
#include <cuda.h>
#include <nvrtc.h>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/errors/catalogue.hpp>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <string>

#include "support/catch.hpp"

using namespace gyre;

namespace {
// The enumerators of the enumeration that ends with "} `type`;" in the header, with their values.
std::map<std::string, uint32_t, std::less<>> enumerators(const char* header, const std::string& type) {
  std::ifstream file(header);
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.find("} " + type + ";");
  REQUIRE(end != std::string::npos);
  const size_t begin = text.rfind("typedef enum", end);
  REQUIRE(begin != std::string::npos);
  std::map<std::string, uint32_t, std::less<>> found;
  static const std::regex enumerator(R"(([A-Z][A-Z0-9_]+)\s*=\s*([0-9]+))");
  for (std::sregex_iterator i(text.begin() + std::ptrdiff_t(begin), text.begin() + std::ptrdiff_t(end),
                              enumerator);
       i != std::sregex_iterator(); ++i) {
    found[(*i)[1]] = uint32_t(std::stoul((*i)[2]));
  }
  return found;
}
}  // namespace

TEST_CASE("the catalogue has every error of the CUDA headers that Gyre is built with, by its number") {
  const auto cuda = enumerators(GYRE_TEST_CUDA_HEADERS "/cuda.h", "CUresult");
  const auto nvrtc = enumerators(GYRE_TEST_CUDA_HEADERS "/nvrtc.h", "nvrtcResult");
  // That it was read: numbers which the compiler takes from the same headers.
  REQUIRE(cuda.size() >= 80);
  REQUIRE(nvrtc.size() >= 12);
  CHECK(cuda.at("CUDA_SUCCESS") == uint32_t(CUDA_SUCCESS));
  CHECK(cuda.at("CUDA_ERROR_UNKNOWN") == uint32_t(CUDA_ERROR_UNKNOWN));
  CHECK(nvrtc.at("NVRTC_ERROR_COMPILATION") == uint32_t(NVRTC_ERROR_COMPILATION));
  const auto expect = [](ErrorSource source, const auto& codes) {
    for (const auto& [name, code] : codes) {
      INFO("bridge/errors/catalogue.cpp and docs/reference/errors.md lack " << name << " (" << code << ")");
      const ErrorEntry* const entry = find_error(source, code);
      REQUIRE(entry != nullptr);
      CHECK(entry->name == name);
    }
  };
  expect(ErrorSource::cuda, cuda);
  expect(ErrorSource::nvrtc, nvrtc);
}

TEST_CASE("a driver's error is explained by its name, its number and the catalogue, in any driver") {
  const cuda::Driver driver;  // without functions
  const std::string text = driver.explain(CUDA_ERROR_LAUNCH_TIMEOUT);
  CHECK(text.find("CUDA_ERROR_LAUNCH_TIMEOUT (702): ") == 0);
  CHECK(text.find(error_advice(ErrorSource::cuda, 702)) != std::string::npos);
  const auto unknown = CUresult(1001);  // no name, and among the values that the type can have
  CHECK(driver.explain(unknown) == "an unknown CUDA error (1001)");
}
