#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gyre::process {

std::string mps_control() {
  const char* const folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp/nvidia-mps") + "/control";
}

bool mps_runs() {
  const std::string path = mps_control();
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;
  if (S_ISFIFO(info.st_mode)) return true;
  sockaddr_un address{};
  if (!S_ISSOCK(info.st_mode) || path.size() >= sizeof address.sun_path) return false;
  // A datagram socket cannot connect to the daemon's stream socket. The refusal says whether anybody has that
  // socket open, and the daemon notices nothing.
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EPROTOTYPE;
}

uint32_t multiprocessors_for(const Options& options, uint32_t blocks, uint32_t total) {
  if (options.multiprocessors != 0) return std::min(options.multiprocessors, total);
  const uint32_t most = std::max(total / 4, 1u);
  return blocks == 0 ? most : std::min(blocks, most);
}

uint32_t percentage_of(uint32_t multiprocessors, uint32_t total) {
  return uint32_t((uint64_t(multiprocessors) * 100 + total - 1) / total);
}

}  // namespace gyre::process
