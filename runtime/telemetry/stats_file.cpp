#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/system/cancellation.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>
#include <gyre/runtime/telemetry/program_counts.hpp>
#include <gyre/runtime/telemetry/stats_file.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <set>

namespace gyre {

namespace {

constexpr std::string_view suffix = ".gyre-stats";
constexpr uint64_t largest_file = uint64_t(1) << 30;

// The front of a file; the stats follow. Written with them in one call, and read likewise: what a reader
// meets half written has another checksum.
struct Header {
  static constexpr uint64_t expected_magic = 0x31746174536579ull << 8 | 'G';  // "GyeStat1"
  static constexpr uint64_t expected_version = 9;
  static constexpr uint64_t first_locked_version = 3;  // from then on their writers lock them
  uint64_t magic = expected_magic;
  uint64_t version = expected_version;
  uint64_t pid = 0;
  uint64_t interval_ms = 0;
  uint64_t written_ns = 0;  // CLOCK_BOOTTIME
  uint64_t bytes = 0;       // that follow
  uint64_t checksum = 0;    // FNV-1a of the words above and of what follows
};
static_assert(sizeof(Header) == 56);

uint64_t boot_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

uint64_t checksum_of(const Header& header, std::string_view stats) {
  return fnv1a(stats, fnv1a({reinterpret_cast<const char*>(&header), offsetof(Header, checksum)}));
}

// The writer of a file holds this lock on it as long as the file is open, so the system lets it go when the
// process ends, however it ends. Of the open file, not of the process: a pid says nothing in another pid
// namespace, and closing some other descriptor of the file lets no such lock go.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}
enum class Lock { taken, others, impossible };
Lock try_lock(int file) {
  struct flock lock = whole_file();
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return Lock::taken;
  return errno == EAGAIN || errno == EACCES ? Lock::others : Lock::impossible;
}
// True while another open file has the lock; `otherwise` where the file system knows no locks.
bool is_locked(int file, bool otherwise) {
  struct flock lock = whole_file();
  return fcntl(file, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : otherwise;
}

// A child of fork() inherits its parent's open files and thereby keeps their locks: it closes the files. Each
// entry is a descriptor + 1; 0: none. A file for which no entry is left stays locked until the children end.
// Relaxed: each entry is a number alone, and guards no memory.
constinit std::array<std::atomic<int>, 64> own_files{};
void close_own_files() {
  for (std::atomic<int>& file : own_files) {
    if (const int descriptor_and_1 = file.load(std::memory_order_relaxed)) close(descriptor_and_1 - 1);
    file.store(0, std::memory_order_relaxed);
  }
}
[[maybe_unused]] const int closes_own_files = pthread_atfork(nullptr, nullptr, close_own_files);
void note_own_file(int descriptor) {
  for (std::atomic<int>& file : own_files) {
    int none = 0;
    if (file.compare_exchange_strong(none, descriptor + 1, std::memory_order_relaxed)) return;
  }
}
void forget_own_file(int descriptor) {
  for (std::atomic<int>& file : own_files) {
    int noted = descriptor + 1;
    if (file.compare_exchange_strong(noted, 0, std::memory_order_relaxed)) return;
  }
}

// Calls visit(name, status) for each published file of the folder.
template <class Visit>
void for_each_file(int folder, Visit&& visit) {
  DIR* const listing = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (listing == nullptr) return;
  while (const dirent* const entry = readdir(listing)) {
    struct stat status {};
    if (std::string_view(entry->d_name).ends_with(suffix) &&
        fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
      visit(entry->d_name, status);
    }
  }
  closedir(listing);
}

// Whether the file, which nobody has locked, was left by a process that is gone. Its writer was one that
// locks its files (earlier versions do not), or ended before it wrote anything.
bool was_left(int file, const struct stat& status) {
  constexpr time_t time_to_write_s = 60;
  if (status.st_size == 0) return time(nullptr) - status.st_mtime > time_to_write_s;
  Header header;
  constexpr size_t front = offsetof(Header, pid);  // the magic and the version
  return pread(file, &header, front, 0) == ssize_t(front) && header.magic == Header::expected_magic &&
         header.version >= Header::first_locked_version;
}

// Removes the files of processes that are gone. Whoever removes a file has its lock, and its name is that
// file's meanwhile: others remove it by that lock alone, and make none where there is one.
void remove_files_of_the_dead(int folder) {
  for_each_file(folder, [folder](const char* name, const struct stat& listed) {
    if (listed.st_uid != geteuid()) return;
    const int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {
    }, named{};
    if (try_lock(file) == Lock::taken && fstat(file, &status) == 0 && was_left(file, status) &&
        fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == status.st_dev &&
        named.st_ino == status.st_ino) {
      unlinkat(folder, name, 0);
    }
    close(file);
  });
}

// A new file of this process, locked; its name is added to `name`. -1, and errno, where there can be none.
int make_file(int folder, std::string& name) {
  constexpr int attempts = 1024;
  static constinit std::atomic<uint64_t> runtimes{0};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    name = fmt::format("{}-{}{}", getpid(), ++runtimes, suffix);
    const int file = openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST) continue;  // a process of another namespace has this number too
    struct stat status {};
    if (file < 0 || (try_lock(file) != Lock::others && fstat(file, &status) == 0 && status.st_nlink != 0)) {
      return file;
    }
    close(file);  // somebody took it for one that was left
  }
  errno = EEXIST;
  return -1;
}

// Of a folder that is this user's and nobody else's to write; -1, and why, otherwise.
int open_folder(const std::string& path, std::string& problem) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status {};
  if (folder < 0 || fstat(folder, &status) != 0) {
    problem = fmt::format("folder {} cannot be opened: {}", path, std::strerror(errno));
  } else if (status.st_uid != geteuid()) {
    problem = fmt::format("folder {} belongs to user {}, and this is user {}; set $GYRE_STATS_DIR to another",
                          path, status.st_uid, geteuid());
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    problem = fmt::format("others may write to folder {} (its mode is {:o}); chmod 700 it", path,
                          status.st_mode & 07777);
  } else {
    return folder;
  }
  if (folder >= 0) close(folder);
  return -1;
}

class Writer {
 public:
  void number(uint64_t value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void real(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    number(bits);
  }
  void text(std::string_view value) {
    number(value.size());
    const auto* const bytes = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), bytes, bytes + value.size());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Believes nothing: whatever the bytes are, it takes no more than there are.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void number(uint64_t& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
  uint64_t number() {
    uint64_t value;
    number(value);
    return value;
  }
  template <class Enum>
  void choice(Enum& value, Enum last) {
    const uint64_t n = number();
    if (n > uint64_t(last)) fail();
    value = Enum(n);
  }
  template <class Enum>
  void choice(Enum& value) {
    choice(value, Enum(detail::names_of<Enum>.size() - 1));
  }
  double real() {
    const uint64_t bits = number();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  void text(std::string& value) {
    const uint64_t size = number();
    const auto bytes = take(size);
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // Reads the length of a list. Fails if fewer than `least_bytes` bytes are left per element: a damaged
  // length must not make the reader allocate.
  uint64_t count(uint64_t least_bytes) {
    const uint64_t n = number();
    if (n > bytes_.size() / least_bytes) fail();
    return n;
  }
  void end() const {
    if (!bytes_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() { throw Error("reading published stats: the bytes are none"); }
  std::span<const std::byte> take(uint64_t size) {
    if (size > bytes_.size()) fail();
    const auto front = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return front;
  }
  std::span<const std::byte> bytes_;
};

// Each calls `visit(value)` for every number, in the order in which the file holds them.
template <class Books, class Visit>
void for_each_number(Books& books, Visit&& visit) {
  visit(books.asks.accepted);
  visit(books.asks.answered);
  visit(books.asks.error_replies);
  visit(books.asks.timed_out);
  visit(books.asks.dead_letters);
  visit(books.asks.cancelled);
  visit(books.asks.late_replies);
  visit(books.asks.inferred);
  visit(books.tells.accepted);
  visit(books.tells.processed);
  visit(books.tells.dead_letters);
  visit(books.tells.inferred);
  visit(books.mail.sent);
  visit(books.mail.processed);
  visit(books.mail.failed);
  visit(books.mail.refused);
  visit(books.mail.lost);
  visit(books.told.sent);
  visit(books.told.handled);
  visit(books.told.dropped);
  visit(books.told.refused);
  visit(books.timers.set);
  visit(books.timers.done);
  visit(books.timers.cancelled);
  visit(books.timers.lost);
  visit(books.dead_letters_dropped);
  visit(books.corrupt_slots);
}
template <class Mail, class Visit>
void for_each_count_of_mail(Mail& mail, Visit&& visit) {
  visit(mail.sent);
  visit(mail.processed);
  visit(mail.failed);
  visit(mail.refused);
  visit(mail.spilled);
  visit(mail.depth);
  visit(mail.depth_high_water);
  visit(mail.outbox_high_water);
  visit(mail.told);
  visit(mail.told_refused);
  visit(mail.timers_set);
  visit(mail.timers_done);
  visit(mail.timers_cancelled);
  visit(mail.bodies_taken);
  visit(mail.bodies_freed);
  visit(mail.bodies_refused);
}
template <class Actors, class Visit>
void for_each_count_of_actors(Actors& actors, Visit&& visit) {
  visit(actors.living);
  visit(actors.created);
  visit(actors.mail_sent);
  visit(actors.mail_processed);
}
template <class Transfer, class Visit>
void for_each_number_of(Transfer& transfer, Visit&& visit) {
  visit(transfer.copies);
  visit(transfer.bytes);
  visit(transfer.ns);
}
template <class Memory, class Visit>
void for_each_size(Memory& memory, Visit&& visit) {
  visit(memory.region);
  visit(memory.bar);
  visit(memory.actors);
  visit(memory.modules);
  visit(memory.buffer_table);
  for (auto& bytes : memory.buffers) visit(bytes);
  for (auto& bytes : memory.buffers_freed) visit(bytes);
  visit(memory.device_total);
  visit(memory.device_free);
}
template <class Handler, class Visit>
void for_each_count(Handler& handler, Visit&& visit) {
  visit(handler.processed);
  visit(handler.failed);
  visit(handler.expired);
  visit(handler.dead_letters);
  visit(handler.handler_ns);
  for (auto& time : handler.times) visit(time);
}

// The least bytes of a handler in the file: the lengths of its two names, and its counts.
constexpr uint64_t least_handler_bytes =
    (2 + std::tuple_size_v<decltype(HandlerStats::times)> + 5) * sizeof(uint64_t);
// The least bytes of an actor type in the file: the length of its name, whether it has state, its counts.
constexpr uint64_t least_actors_bytes = (2 + 4) * sizeof(uint64_t);
// The least bytes of a worker in the file: depth, high water, heartbeat age, its mail, numbers of actor types
// and of handlers.
constexpr uint64_t least_worker_bytes = (5 + sizeof(MailStats) / sizeof(uint64_t)) * sizeof(uint64_t);
// The least bytes of a count of the program's: the lengths of its name and help, its kind and value.
constexpr uint64_t least_count_bytes = 4 * sizeof(uint64_t);
// The least bytes of a section: the length of its name, its number of counts, and a count.
constexpr uint64_t least_section_bytes = 2 * sizeof(uint64_t) + least_count_bytes;

}  // namespace

std::string stats_folder() {
  const auto absolute = [](const char* name) {
    const char* const path = std::getenv(name);
    return path != nullptr && path[0] == '/' ? std::string(path) : std::string();
  };
  if (const std::string asked = absolute("GYRE_STATS_DIR"); !asked.empty()) return asked;
  if (const std::string runtime = absolute("XDG_RUNTIME_DIR"); !runtime.empty()) return runtime + "/gyre";
  return fmt::format("/tmp/gyre-{}", geteuid());
}

std::vector<std::string> stats_files() {
  const std::string folder = stats_folder();
  std::string problem;
  const int descriptor = open_folder(folder, problem);
  if (descriptor < 0) return {};
  std::vector<std::pair<std::pair<time_t, long>, std::string>> found;
  for_each_file(descriptor, [&](const char* name, const struct stat& status) {
    found.push_back({{status.st_mtim.tv_sec, status.st_mtim.tv_nsec}, folder + "/" + name});
  });
  close(descriptor);
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  for (auto& [time, path] : found) files.push_back(std::move(path));
  return files;
}

PublishedStats read_stats_file(const std::string& path) {
  const auto wrong = [&path](const std::string& what) -> Error {
    return Error(fmt::format("reading published stats from {}: {}", path, what));
  };
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) throw wrong(std::strerror(errno));
  struct Close {
    int file;
    ~Close() { close(file); }
  } const closing{file};
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) throw wrong("it is no file");
  if (status.st_uid != geteuid()) throw wrong(fmt::format("it belongs to user {}", status.st_uid));
  if (uint64_t(status.st_size) < sizeof(Header) || uint64_t(status.st_size) > largest_file) {
    throw wrong(fmt::format("it has {} bytes, and such a file has {} to {}", status.st_size, sizeof(Header),
                            largest_file));
  }
  constexpr int attempts = 100;  // it may be written meanwhile
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string bytes(size_t(status.st_size), '\0');
    const ssize_t count = pread(file, bytes.data(), bytes.size(), 0);
    if (count < ssize_t(sizeof(Header))) continue;
    bytes.resize(size_t(count));
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != Header::expected_magic) throw wrong("it was not written by Gyre");
    if (header.version != Header::expected_version) {
      throw wrong(
          fmt::format("it is of version {}, and this Gyre reads {}; use the tool of the Gyre that "
                      "wrote it",
                      header.version, Header::expected_version));
    }
    const std::string_view rest = std::string_view(bytes).substr(sizeof header);
    if (header.bytes > rest.size() || header.checksum != checksum_of(header, rest.substr(0, header.bytes))) {
      continue;
    }
    PublishedStats published;
    published.pid = header.pid;
    published.interval_ms = header.interval_ms;
    published.age_s = double(int64_t(boot_time_ns() - header.written_ns)) * 1e-9;
    const bool pid_there = header.pid != 0 && header.pid <= uint64_t(std::numeric_limits<pid_t>::max()) &&
                           (kill(pid_t(header.pid), 0) == 0 || errno == EPERM);
    published.process_there = is_locked(file, pid_there);
    published.stats = detail::read_stats(std::as_bytes(std::span(rest.data(), header.bytes)));
    return published;
  }
  throw wrong("it is damaged, or cut short; remove it if its process is gone");
}

namespace detail {

std::vector<std::byte> write_stats(const Stats& stats) {
  Writer writer;
  const auto number = [&writer](uint64_t value) { writer.number(value); };
  number(uint64_t(stats.engine));
  number(uint64_t(stats.transport));
  writer.text(stats.device);
  number(uint64_t(stats.state));
  writer.real(stats.uptime_s);
  number(stats.restarts);
  number(stats.log_lines);
  number(stats.log_lines_dropped);
  writer.real(stats.timings.compile_ms);
  writer.real(stats.timings.launch_ms);
  number(stats.timings.compiled_ahead ? 2 : stats.timings.compiled_from_cache ? 1 : 0);
  number(stats.slots);
  for_each_number(stats.books, number);
  for_each_number_of(stats.writes, number);
  for_each_number_of(stats.reads, number);
  for_each_size(stats.memory, number);
  number(stats.workers.size());
  for (const WorkerStats& worker : stats.workers) {
    number(worker.depth);
    number(worker.depth_high_water);
    writer.real(worker.heartbeat_age_s.value_or(-1));
    for_each_count_of_mail(worker.mail, number);
    number(worker.actors.size());
    for (const ActorStats& actors : worker.actors) {
      writer.text(actors.actor);
      number(actors.has_state ? 1 : 0);
      for_each_count_of_actors(actors, number);
    }
    number(worker.handlers.size());
    for (const HandlerStats& handler : worker.handlers) {
      writer.text(handler.actor);
      writer.text(handler.message);
      for_each_count(handler, number);
    }
  }
  number(stats.program.size());
  for (const CountSection& section : stats.program) {
    writer.text(section.name);
    number(section.counts.size());
    for (const NamedCount& count : section.counts) {
      writer.text(count.name);
      writer.text(count.help);
      number(uint64_t(count.kind));
      number(count.value);
    }
  }
  return writer.take();
}

Stats read_stats(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto number = [&reader](uint64_t& value) { reader.number(value); };
  Stats stats;
  reader.choice(stats.engine);
  reader.choice(stats.transport);
  reader.text(stats.device);
  reader.choice(stats.state, Lifecycle::failed);
  stats.uptime_s = reader.real();
  stats.restarts = uint32_t(reader.number());
  stats.log_lines = reader.number();
  stats.log_lines_dropped = reader.number();
  stats.timings.compile_ms = reader.real();
  stats.timings.launch_ms = reader.real();
  const uint64_t compiled = reader.number();
  stats.timings.compiled_ahead = compiled == 2;
  stats.timings.compiled_from_cache = compiled == 1;
  stats.slots = uint32_t(reader.number());
  for_each_number(stats.books, number);
  for_each_number_of(stats.writes, number);
  for_each_number_of(stats.reads, number);
  for_each_size(stats.memory, number);
  stats.workers.resize(reader.count(least_worker_bytes));
  for (WorkerStats& worker : stats.workers) {
    number(worker.depth);
    number(worker.depth_high_water);
    if (const double age_s = reader.real(); age_s >= 0) worker.heartbeat_age_s = age_s;
    for_each_count_of_mail(worker.mail, number);
    worker.actors.resize(reader.count(least_actors_bytes));
    for (ActorStats& actors : worker.actors) {
      reader.text(actors.actor);
      actors.has_state = reader.number() != 0;
      for_each_count_of_actors(actors, number);
    }
    worker.handlers.resize(reader.count(least_handler_bytes));
    if (worker.handlers.size() != stats.workers.front().handlers.size() ||
        worker.actors.size() != stats.workers.front().actors.size()) {
      throw Error("reading published stats: the workers have different handlers");
    }
    for (HandlerStats& handler : worker.handlers) {
      reader.text(handler.actor);
      reader.text(handler.message);
      for_each_count(handler, number);
    }
  }
  stats.program.resize(reader.count(least_section_bytes));
  std::set<std::string_view> sections;
  for (CountSection& section : stats.program) {
    reader.text(section.name);
    section.counts.resize(reader.count(least_count_bytes));
    for (NamedCount& count : section.counts) {
      reader.text(count.name);
      reader.text(count.help);
      reader.choice(count.kind, CountKind::gauge);
      number(count.value);
    }
    // A terminal and Prometheus get the texts as they are.
    if (!problem_with(section).empty() || !sections.insert(section.name).second)
      throw Error("reading published stats: the counts of the program are none");
  }
  reader.end();
  return stats;
}

std::unique_ptr<StatsPublisher> StatsPublisher::start(std::function<Stats()> read,
                                                      std::chrono::milliseconds interval,
                                                      ActorRequests::List list) noexcept {
  const CancellationDeferred deferred;
  try {
    return std::unique_ptr<StatsPublisher>(new StatsPublisher(std::move(read), interval, std::move(list)));
  } catch (const std::exception& error) {
    log(LogLevel::warning, [&] { return fmt::format("the stats are not published: {}", error.what()); });
    return nullptr;
  }
}

StatsPublisher::StatsPublisher(std::function<Stats()> read, std::chrono::milliseconds interval,
                               ActorRequests::List list)
    : read_(std::move(read)), interval_(interval) {
  const std::string folder = stats_folder();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error(fmt::format("folder {} cannot be made: {}; set $GYRE_STATS_DIR to another", folder,
                            std::strerror(errno)));
  }
  std::string problem;
  const int directory = open_folder(folder, problem);
  if (directory < 0) throw Error(problem);
  remove_files_of_the_dead(directory);
  std::string name;
  file_ = make_file(directory, name);
  const int error = errno;
  close(directory);
  path_ = folder + "/" + name;
  if (file_ < 0) throw Error(fmt::format("file {} cannot be made: {}", path_, std::strerror(error)));
  note_own_file(file_);
  try {
    if (!write()) throw Error(fmt::format("file {} cannot be written: {}", path_, std::strerror(errno)));
    thread_->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread_->end < 0) throw Error(fmt::format("no eventfd can be made: {}", std::strerror(errno)));
    note_own_file(thread_->end);
    thread_->requests = std::make_unique<ActorRequests>(file_, std::move(list));
    if (thread_->requests->descriptor() >= 0) note_own_file(thread_->requests->descriptor());
    const detail::SignalsBlocked blocked;
    thread_->thread = std::thread([this] { run(); });
  } catch (...) {
    end_files();
    throw;
  }
}

StatsPublisher::~StatsPublisher() {
  const CancellationDeferred deferred;
  if (fork_.forked()) {
    (void)thread_.release();  // and the file is closed already
  } else {
    const uint64_t one = 1;
    (void)!::write(thread_->end, &one, sizeof one);  // it is 0: this does not fail
    thread_->thread.join();
    end_files();
  }
}

void StatsPublisher::end_files() noexcept {
  if (thread_->requests && thread_->requests->descriptor() >= 0)
    forget_own_file(thread_->requests->descriptor());
  thread_->requests.reset();
  if (thread_->end >= 0) {
    forget_own_file(thread_->end);
    close(thread_->end);
  }
  unlink(path_.c_str());
  forget_own_file(file_);
  close(file_);
}

bool StatsPublisher::write() {
  const std::vector<std::byte> stats = write_stats(read_());
  Header header;
  header.pid = uint64_t(getpid());
  header.interval_ms = uint64_t(interval_.count());
  header.written_ns = boot_time_ns();
  header.bytes = stats.size();
  const std::string_view text(reinterpret_cast<const char*>(stats.data()), stats.size());
  header.checksum = checksum_of(header, text);
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  all += text;
  return pwrite(file_, all.data(), all.size(), 0) == ssize_t(all.size());
}

// Answers requests until then. False once the thread is to end.
bool StatsPublisher::wait_until(std::chrono::steady_clock::time_point time) {
  using std::chrono::milliseconds;
  const ActorRequests& requests = *thread_->requests;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(time - std::chrono::steady_clock::now());
    pollfd polled[] = {{thread_->end, POLLIN, 0}, {requests.descriptor(), POLLIN, 0}};
    const auto most = milliseconds(std::numeric_limits<int>::max());
    const int ready = poll(polled, 2, int(std::clamp(left, milliseconds(0), most).count()));
    if (ready > 0 && polled[0].revents != 0) return false;
    if (ready > 0 && polled[1].revents != 0) {
      try {
        requests.answer();
      } catch (const std::exception&) {  // no memory: who asked learns that no answer comes
      }
    }
    if (std::chrono::steady_clock::now() >= time) return true;
  }
}

void StatsPublisher::run() {
  bool failed = false;
  while (wait_until(std::chrono::steady_clock::now() + interval_)) {
    bool written = false;
    try {
      written = write();
    } catch (const std::exception&) {  // no memory: the next time, perhaps
    }
    if (!written && !failed) {
      log(LogLevel::warning,
          [this] { return fmt::format("the stats in {} are old: it cannot be written", path_); });
    }
    failed = !written;
  }
}

}  // namespace detail
}  // namespace gyre
