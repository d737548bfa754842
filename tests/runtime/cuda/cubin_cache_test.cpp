// Compiled programs on disk: found by exactly what they were compiled from, and never believed when damaged.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gyre/runtime/cuda/cubin_cache.hpp>

#include <atomic>
#include <ctime>
#include <thread>

#include "support/catch.hpp"
#include "support/source_actors.hpp"
#include "support/temporary_folder.hpp"

using namespace gyre;
using namespace gyre_test;
namespace fs = std::filesystem;

namespace {

cuda::CompiledKernel kernel_of(const std::string& cubin) {
  cuda::CompiledKernel kernel;
  kernel.cubin = cubin;
  kernel.lowered_name = "_Z6kernel";
  kernel.lowered_description = "_Z11description";
  kernel.log = "a warning\n";
  return kernel;
}

bool same(const std::optional<cuda::CompiledKernel>& found, const cuda::CompiledKernel& stored) {
  return found && found->from_cache && found->cubin == stored.cubin &&
         found->lowered_name == stored.lowered_name &&
         found->lowered_description == stored.lowered_description && found->log == stored.log;
}

void set_used(const fs::path& file, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

size_t files_in(const fs::path& folder) {
  return size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("the cache gives back what was stored, for the same inputs alone") {
  const TemporaryFolder folder;
  const cuda::CubinCache cache((folder.path() / "deep" / "gyre").string());
  REQUIRE(cache.refusal().empty());
  const auto kernel = kernel_of(std::string("\177ELF\0\1\2", 7));
  CHECK_FALSE(cache.find("inputs"));
  CHECK(cache.store("inputs", kernel).empty());
  CHECK(same(cache.find("inputs"), kernel));
  CHECK_FALSE(cache.find("inputs "));
  CHECK_FALSE(cache.find(""));
  CHECK(same(cuda::CubinCache((folder.path() / "deep" / "gyre").string()).find("inputs"), kernel));

  const auto newer = kernel_of("another");
  CHECK(cache.store("inputs", newer).empty());
  CHECK(same(cache.find("inputs"), newer));
  struct stat status {};
  REQUIRE(stat((folder.path() / "deep" / "gyre").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  CHECK(files_in(folder.path() / "deep" / "gyre") == 1);
}

TEST_CASE("a file of other inputs under the same name is not believed") {
  const TemporaryFolder folder;
  const cuda::CubinCache cache(folder.path().string());
  REQUIRE(cache.store("one", kernel_of("cubin of one")).empty());
  fs::rename(folder.path() / cuda::CubinCache::file_name("one"),
             folder.path() / cuda::CubinCache::file_name("other"));
  CHECK_FALSE(cache.find("other"));
}

TEST_CASE("whatever a program is compiled from is among the inputs") {
  const ActorSet actors = counter_from_source();
  const cuda::Program program = cuda::program_of(actors, 90, 32);
  const std::string inputs = cuda::inputs_of(program, "13.0");
  const TemporaryFolder folder;
  const cuda::CubinCache cache(folder.path().string());
  const auto kernel = kernel_of("cubin");
  REQUIRE(cache.store(inputs, kernel).empty());
  CHECK(same(cache.find(cuda::inputs_of(cuda::program_of(counter_from_source(), 90, 32), "13.0")), kernel));

  const auto missed = [&](const cuda::Program& changed, const char* compiler = "13.0") {
    return !cache.find(cuda::inputs_of(changed, compiler));
  };
  CHECK(missed(program, "13.1"));
  CHECK(missed(cuda::program_of(actors, 100, 32)));
  CHECK(missed(cuda::program_of(actors, 90, 64)));
  for (size_t n = 0; n < program.options.size(); ++n) {
    cuda::Program changed = program;
    changed.options[n] += "0";
    CHECK(missed(changed));
    changed.options.erase(changed.options.begin() + std::ptrdiff_t(n));
    CHECK(missed(changed));
  }
  cuda::Program changed = program;
  changed.text += "\n";
  CHECK(missed(changed));
  changed = program;
  changed.kernel += " ";
  CHECK(missed(changed));
  changed = program;
  changed.description.clear();
  CHECK(missed(changed));
  for (size_t n = 0; n < program.headers.size(); ++n) {
    std::vector<SourceFile> headers(program.headers.begin(), program.headers.end());
    const std::string longer = std::string(headers[n].text) + " ";
    headers[n].text = longer;
    changed = program;
    changed.headers = headers;
    INFO(headers[n].name);
    CHECK(missed(changed));
    headers[n] = {"another/name.hpp", program.headers[n].text};
    CHECK(missed(changed));
    headers.erase(headers.begin() + std::ptrdiff_t(n));
    changed.headers = headers;
    CHECK(missed(changed));
  }
}

TEST_CASE("pieces of a program that run into each other are not the same inputs") {
  cuda::Program one, other;
  one.options = {"ab", "c"};
  other.options = {"a", "bc"};
  CHECK(cuda::inputs_of(one, "") != cuda::inputs_of(other, ""));
  one.options = {"a\noption 1\nb"};
  other.options = {"a", "b"};
  CHECK(cuda::inputs_of(one, "") != cuda::inputs_of(other, ""));
}

TEST_CASE("a file cut off anywhere, or with any byte changed, is a miss, and is written anew") {
  const TemporaryFolder folder;
  const cuda::CubinCache cache(folder.path().string());
  const auto kernel = kernel_of("a cubin");
  REQUIRE(cache.store("inputs", kernel).empty());
  const fs::path file = folder.path() / cuda::CubinCache::file_name("inputs");
  const std::string whole = read_file(file);
  REQUIRE(whole.size() > 64);
  for (size_t length = 0; length < whole.size(); ++length) {
    write_file(file, whole.substr(0, length));
    REQUIRE_FALSE(cache.find("inputs"));
  }
  write_file(file, whole + "x");
  CHECK_FALSE(cache.find("inputs"));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = whole;
      changed[at] = char(changed[at] ^ (1 << bit));
      write_file(file, changed);
      REQUIRE_FALSE(cache.find("inputs"));
    }
  }
  CHECK(cache.store("inputs", kernel).empty());
  CHECK(same(cache.find("inputs"), kernel));
  fs::remove(file);
  fs::create_directory(file);  // nothing can be written there
  CHECK_FALSE(cache.find("inputs"));
  CHECK(cache.store("inputs", kernel).find(file.filename().string()) != std::string::npos);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a folder that others may write to, or that is somebody else's, is not used") {
  const TemporaryFolder folder;
  REQUIRE(cuda::CubinCache(folder.path().string()).store("inputs", kernel_of("cubin")).empty());
  for (const mode_t mode : {mode_t(0720), mode_t(0702), mode_t(01777)}) {
    REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    const cuda::CubinCache cache(folder.path().string());
    INFO(cache.refusal());
    CHECK(cache.refusal().find(fmt::format("{:o}", mode)) != std::string::npos);
    CHECK_FALSE(cache.find("inputs"));
    CHECK(cache.store("inputs", kernel_of("cubin")) == cache.refusal());
  }
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  CHECK(cuda::CubinCache(folder.path().string()).find("inputs"));

  fs::path foreign = "/";  // root's
  if (geteuid() == 0) {
    foreign = folder.path();
    REQUIRE(chown(foreign.c_str(), 54321, gid_t(-1)) == 0);
  }
  const cuda::CubinCache cache(foreign.string());
  INFO(cache.refusal());
  CHECK(cache.refusal().find("belongs to user") != std::string::npos);
  CHECK_FALSE(cache.find("inputs"));
}

TEST_CASE("what is no folder, or cannot be made, is a reason and no error") {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", "text");
  for (const std::string& path :
       {(folder.path() / "file").string(), (folder.path() / "file/below").string()}) {
    const cuda::CubinCache cache(path);
    CHECK(cache.refusal().find(path) != std::string::npos);
    CHECK_FALSE(cache.find("inputs"));
    CHECK_FALSE(cache.store("inputs", kernel_of("cubin")).empty());
  }
  CHECK_FALSE(cuda::CubinCache("").refusal().empty());
}

TEST_CASE("when there is no room, what was used last is kept, and files of others are left alone") {
  const TemporaryFolder folder;
  const auto kernel = kernel_of(std::string(1000, 'x'));
  const auto file = [&](const char* inputs) { return folder.path() / cuda::CubinCache::file_name(inputs); };
  REQUIRE(cuda::CubinCache(folder.path().string()).store("a", kernel).empty());
  const uint64_t size = fs::file_size(file("a"));
  const cuda::CubinCache cache(folder.path().string(), 3 * size);
  write_file(folder.path() / "notes.txt", std::string(5000, 'n'));
  const fs::path dead = file("a").string() + "-1-1.unfinished",
                 alive = file("a").string() + "-1-2.unfinished";
  write_file(dead, "half");
  write_file(alive, "half");
  set_used(dead, 1000);
  REQUIRE(cache.store("b", kernel).empty());
  REQUIRE(cache.store("c", kernel).empty());
  set_used(file("a"), 1000);
  set_used(file("b"), 2000);
  set_used(file("c"), 3000);
  CHECK(cache.find("a"));  // used now
  REQUIRE(cache.store("d", kernel).empty());
  CHECK(cache.find("a"));
  CHECK_FALSE(cache.find("b"));
  CHECK(cache.find("c"));
  CHECK(cache.find("d"));
  CHECK(fs::exists(folder.path() / "notes.txt"));
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive));
  CHECK_FALSE(cache.store("e", kernel_of(std::string(4 * size, 'x'))).empty());
  CHECK(cache.find("a"));
}

TEST_CASE("two writers and a reader at once: a file is there whole, or not at all") {
  const TemporaryFolder folder;
  const cuda::CompiledKernel kernels[] = {kernel_of(std::string(20'000, 'a')),
                                          kernel_of(std::string(30'000, 'b'))};
  std::atomic<int> wrong{0}, writing{2};
  std::vector<std::thread> writers;
  for (const cuda::CompiledKernel& kernel : kernels) {
    writers.emplace_back([&] {
      const cuda::CubinCache cache(folder.path().string());
      for (int round = 0; round < 200; ++round) wrong += cache.store("inputs", kernel).empty() ? 0 : 1;
      --writing;
    });
  }
  const cuda::CubinCache cache(folder.path().string());
  while (writing != 0) {
    if (const auto found = cache.find("inputs")) {
      if (!same(found, kernels[0]) && !same(found, kernels[1])) ++wrong;
    } else if (fs::exists(folder.path() / cuda::CubinCache::file_name("inputs")) && !cache.find("inputs")) {
      ++wrong;
    }
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(wrong == 0);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("the folder is the one that the environment names") {
  const Environment home("HOME", "/home/me"), xdg("XDG_CACHE_HOME", nullptr), own("GYRE_CACHE_DIR", nullptr);
  CHECK(cuda::CubinCache::default_folder() == "/home/me/.cache/gyre");
  {
    const Environment set("XDG_CACHE_HOME", "/var/tmp/caches");
    CHECK(cuda::CubinCache::default_folder() == "/var/tmp/caches/gyre");
    const Environment set_too("GYRE_CACHE_DIR", "/srv/gyre");
    CHECK(cuda::CubinCache::default_folder() == "/srv/gyre");
  }
  const Environment relative("XDG_CACHE_HOME", "caches");  // as the specification has it: ignored
  CHECK(cuda::CubinCache::default_folder() == "/home/me/.cache/gyre");
  const Environment none("HOME", nullptr);
  CHECK(cuda::CubinCache::default_folder().empty());
}
