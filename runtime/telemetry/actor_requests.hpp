// Lists of actors for other processes of the same user, of the runtimes that publish their stats.
#pragma once

#include <gyre/runtime/actor_page.hpp>
#include <gyre/runtime/errors.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace gyre {

/// Lists keys of the actors of one type of a runtime in another process: asks it over a socket.
/// @param stats_file  the runtime's; see stats_files()
/// @param type        the actor type's qualified name
/// @param from        ActorPage::next of the page before; the default is the first page
/// @param most        keys in the page, at most 8,192
/// @returns           a page, as of Client::list_actors()
/// @throws Error      if the process is gone, does not answer within 10 s, or refuses: with its reason
ActorPage list_published_actors(const std::string& stats_file, std::string_view type,
                                const ActorCursor& from = {}, size_t most = 1000);

namespace detail {

/// Answers such requests. The socket is in Linux's abstract namespace: it has no file, and is gone with its
/// process. Its name is the stats file's device and inode. For one thread.
class ActorRequests {
 public:
  using List = std::function<Result<ActorPage>(std::string_view type, const ActorCursor& from, size_t most)>;

  /// Listens. Without a socket, which is logged as a warning, the object does nothing.
  /// @param stats_file  open
  ActorRequests(int stats_file, List list);
  ~ActorRequests();
  ActorRequests(const ActorRequests&) = delete;
  ActorRequests& operator=(const ActorRequests&) = delete;

  /// The socket to poll for POLLIN, when answer() has something to do; -1: there is none.
  int descriptor() const { return socket_; }
  /// Answers one request. Takes as long as `list`, and up to 100 ms for a client that connects and is silent.
  void answer() const;

 private:
  const List list_;
  int socket_ = -1;
};

}  // namespace detail
}  // namespace gyre
