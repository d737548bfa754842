// gyre.h: sets of actors, and the lives of runtimes.
#include <fmt/format.h>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/c/objects.hpp>

using namespace gyre;
using namespace gyre::c;

namespace {

static_assert(GYRE_ENGINE_AUTO == int(EngineKind::automatic) && GYRE_ENGINE_CUDA == int(EngineKind::cuda) &&
              GYRE_ENGINE_CPU == int(EngineKind::cpu));
static_assert(GYRE_TRANSPORT_AUTO == int(TransportKind::automatic) &&
              GYRE_TRANSPORT_BAR == int(TransportKind::bar) &&
              GYRE_TRANSPORT_PINNED == int(TransportKind::pinned) &&
              GYRE_TRANSPORT_HEAP == int(TransportKind::heap) &&
              GYRE_TRANSPORT_UNIFIED == int(TransportKind::unified));
static_assert(GYRE_WAIT_POLITE == int(WaitPolicy::polite) && GYRE_WAIT_SPIN == int(WaitPolicy::spin));
static_assert(GYRE_ISOLATION_PROCESS == int(Isolation::process) &&
              GYRE_ISOLATION_IN_PROCESS == int(Isolation::in_process));
static_assert(GYRE_ALL_MULTIPROCESSORS == all_multiprocessors);
static_assert(GYRE_CONTEXT_OWN == int(CudaContext::own) &&
              GYRE_CONTEXT_PRIMARY == int(CudaContext::primary) &&
              GYRE_CONTEXT_GIVEN == int(CudaContext::given));

gyre_options defaults() {
  const Options standard;
  gyre_options options{};
  options.struct_size = sizeof options;
  options.engine = gyre_engine(standard.engine);
  options.device = standard.device;
  options.transport = gyre_transport(standard.transport);
  options.wait = int32_t(standard.wait);
  options.isolation = int32_t(standard.isolation);
  options.heartbeat_timeout_ms = standard.heartbeat_timeout.count();
  options.restart_times = standard.restart.times;
  options.stall_after_ms = standard.stall_after.count();
  options.restart_within_ms = standard.restart.within.count();
  options.multiprocessors = standard.multiprocessors;
  options.context = int32_t(standard.context);
  options.workers = standard.workers;
  options.block = standard.block;
  options.blocks = standard.blocks;
  options.slots = standard.slots;
  options.slot_bytes = standard.slot_bytes;
  options.max_reply_bytes = standard.max_reply_bytes;
  options.actors_per_worker = standard.actors_per_worker;
  options.spill_bytes = standard.spill_bytes;
  options.body_pool_bytes = standard.body_pool_bytes;
  options.body_bytes = standard.body_bytes;
  options.max_buffers = standard.max_buffers;
  options.verbose = standard.verbose;
  options.cache = standard.cache;
  options.timeout_ms = standard.timeout.count();
  options.arena_bytes = standard.arena_bytes;
  options.region_budget = standard.region_budget;
  return options;
}

gyre_status read_options(const char* doing, const gyre_options& given, Options& options) {
  const auto in_range = [&](const char* name, int64_t value, int64_t last) -> gyre_status {
    if (value >= 0 && value <= last) return GYRE_OK;
    return refuse(GYRE_BAD_OPTIONS,
                  fmt::format("{}: options->{} is {}; give 0 to {}", doing, name, value, last));
  };
  GYRE_C_TRY(in_range("engine", given.engine, GYRE_ENGINE_CPU));
  GYRE_C_TRY(in_range("transport", given.transport, GYRE_TRANSPORT_UNIFIED));
  GYRE_C_TRY(in_range("wait", given.wait, GYRE_WAIT_SPIN));
  GYRE_C_TRY(in_range("device", given.device, 65535));
  GYRE_C_TRY(in_range("timeout_ms", given.timeout_ms, int64_t(366) * 24 * 3600 * 1000));
  GYRE_C_TRY(in_range("isolation", given.isolation, GYRE_ISOLATION_IN_PROCESS));
  GYRE_C_TRY(in_range("heartbeat_timeout_ms", given.heartbeat_timeout_ms, 3600 * 1000));
  GYRE_C_TRY(in_range("restart_within_ms", given.restart_within_ms, 24 * 3600 * 1000));
  GYRE_C_TRY(in_range("context", given.context, GYRE_CONTEXT_GIVEN));
  GYRE_C_TRY(in_range("reserved", given.reserved, 0));
  GYRE_C_TRY(in_range("stall_after_ms", given.stall_after_ms, 24 * 3600 * 1000));
  if (given.pin_worker_count > 65536 || (given.pin_worker_count != 0 && given.pin_workers == nullptr)) {
    return refuse(GYRE_BAD_OPTIONS,
                  fmt::format("{}: options->pin_workers {} {} processors; give up to 65,536", doing,
                              given.pin_workers == nullptr ? "is null, and says to be" : "has",
                              given.pin_worker_count));
  }
  options.engine = EngineKind(given.engine);
  options.device = given.device;
  options.transport = TransportKind(given.transport);
  options.wait = WaitPolicy(given.wait);
  options.isolation = Isolation(given.isolation);
  options.heartbeat_timeout = std::chrono::milliseconds(given.heartbeat_timeout_ms);
  options.stall_after = std::chrono::milliseconds(given.stall_after_ms);
  options.restart = {given.restart_times, std::chrono::milliseconds(given.restart_within_ms)};
  options.multiprocessors = given.multiprocessors;
  options.context = CudaContext(given.context);
  options.cuda_context = given.cuda_context;
  options.workers = given.workers;
  options.block = given.block;
  options.blocks = given.blocks;
  options.slots = given.slots;
  options.slot_bytes = given.slot_bytes;
  options.max_reply_bytes = given.max_reply_bytes;
  options.actors_per_worker = given.actors_per_worker;
  options.spill_bytes = given.spill_bytes;
  options.body_pool_bytes = given.body_pool_bytes;
  options.body_bytes = given.body_bytes;
  options.max_buffers = given.max_buffers;
  options.verbose = given.verbose != 0;
  options.cache = given.cache != 0;
  options.timeout = std::chrono::milliseconds(given.timeout_ms);
  options.arena_bytes = given.arena_bytes;
  options.region_budget = given.region_budget;
  if (given.keep_program != nullptr) {
    std::string_view folder;
    GYRE_C_TRY(read_text(doing, "options->keep_program", given.keep_program, folder));
    options.keep_program = folder;
  }
  options.pin_workers.assign(given.pin_workers, given.pin_workers + given.pin_worker_count);
  return GYRE_OK;
}

gyre_status add_actors(ActorSet set, gyre_actors* actors) {
  *actors = ActorSets::table().add(std::move(set));
  return GYRE_OK;
}

int64_t standard_timeout_ns(const Runtime& runtime) {
  return std::chrono::nanoseconds(runtime.options().timeout).count();
}

// Uses the runtime, and reads a timeout for it.
gyre_status use_for(const char* doing, gyre_runtime runtime, int64_t timeout_ns, Use<Runtimes>& used,
                    std::chrono::nanoseconds& timeout) {
  GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
  int64_t ns = 0;
  GYRE_C_TRY(read_timeout(doing, timeout_ns, standard_timeout_ns(used->runtime), ns));
  timeout = std::chrono::nanoseconds(ns);
  return GYRE_OK;
}

}  // namespace

gyre_status gyre_actors_builtin(gyre_actors* actors) {
  const char* const doing = "gyre_actors_builtin";
  return guarded(doing, [&]() -> gyre_status {
    if (actors == nullptr) return invalid(doing, "actors is null");
    return add_actors(builtin_actors(), actors);
  });
}

gyre_status gyre_actors_from_source(const gyre_source* source, gyre_actors* actors) {
  const char* const doing = "gyre_actors_from_source";
  return guarded(doing, [&]() -> gyre_status {
    gyre_source given;
    GYRE_C_TRY(read_struct(doing, "source", source, given));
    if (actors == nullptr) return invalid(doing, "actors is null");
    if (given.type_count > most_listed || given.header_count > most_listed) {
      return invalid(doing, fmt::format("{} types and {} headers are given, and {} of each are the most",
                                        given.type_count, given.header_count, most_listed));
    }
    if (given.types == nullptr && given.type_count != 0) return invalid(doing, "source->types is null");
    if (given.headers == nullptr && given.header_count != 0) return invalid(doing, "source->headers is null");
    std::string_view text;
    if (given.text == nullptr) return invalid(doing, "source->text is null");
    GYRE_C_TRY(read_text(doing, "source->text", given.text, given.text_length, text));
    std::vector<std::string> types;
    for (size_t i = 0; i < given.type_count; ++i) {
      std::string_view type;
      GYRE_C_TRY(read_text(doing, "a type's name", given.types[i], type));
      types.emplace_back(type);
    }
    std::vector<SourceText> headers;
    for (size_t i = 0; i < given.header_count; ++i) {
      std::string_view name, header;
      GYRE_C_TRY(read_text(doing, "a header's name", given.headers[i].name, name));
      GYRE_C_TRY(
          read_text(doing, "a header's text", given.headers[i].text, given.headers[i].text_length, header));
      headers.push_back({std::string(name), std::string(header)});
    }
    for (SourceText& header : builtin_actor_headers()) headers.push_back(std::move(header));
    if (given.schema != 0) {
      Use<Schemas> schema;
      GYRE_C_TRY(use<Schemas>(doing, given.schema, schema));
      headers.insert(headers.end(), schema->views().begin(), schema->views().end());
    }
    return add_actors(ActorSet::from_source(std::string(text), std::move(types), std::move(headers)), actors);
  });
}

gyre_status gyre_actors_load(const char* path, const char* name, gyre_actors* actors) {
  const char* const doing = "gyre_actors_load";
  return guarded(doing, [&]() -> gyre_status {
    std::string_view file, exported;
    GYRE_C_TRY(read_text(doing, "path", path, file));
    if (name != nullptr) GYRE_C_TRY(read_text(doing, "name", name, exported));
    if (actors == nullptr) return invalid(doing, "actors is null");
    if (file.empty())
      return refuse(GYRE_FAILED, fmt::format("{}: loading a file without a name: give its path", doing));
    if (exported.size() > 256)
      return invalid(doing, fmt::format("name has {} bytes; give 256 at most", exported.size()));
    return add_actors(ActorSet::from_library(load_actor_library(std::string(file), exported)), actors);
  });
}

gyre_status gyre_actors_release(gyre_actors actors) {
  return release<ActorSets>("gyre_actors_release", actors);
}

gyre_status gyre_options_init(gyre_options* options, size_t struct_size) {
  const char* const doing = "gyre_options_init";
  return guarded(doing, [&]() -> gyre_status {
    if (options == nullptr) return invalid(doing, "options is null");
    GYRE_C_TRY(check_struct(doing, "options", &struct_size, sizeof *options));
    options->struct_size = struct_size;
    write_struct(options, defaults());
    return GYRE_OK;
  });
}

gyre_status gyre_launch(gyre_actors actors, const gyre_options* options, gyre_runtime* runtime) {
  const char* const doing = "gyre_launch";
  return guarded(doing, [&]() -> gyre_status {
    if (runtime == nullptr) return invalid(doing, "runtime is null");
    gyre_options given = defaults();
    if (options != nullptr) GYRE_C_TRY(read_struct(doing, "options", options, given));
    Options known;
    GYRE_C_TRY(read_options(doing, given, known));
    Use<ActorSets> used;
    if (actors != 0) GYRE_C_TRY(use<ActorSets>(doing, actors, used));
    ActorSet set = actors == 0 ? builtin_actors() : *used;
    if (given.grid_scoped != 0) set = set.grid_scoped();
    Runtime launched = Runtime::launch(std::move(set), known);
    Client client = launched.client();
    *runtime = Runtimes::table().add({std::move(launched), std::move(client)});
    return GYRE_OK;
  });
}

gyre_status gyre_set_active(gyre_runtime runtime, int32_t active, int64_t timeout_ns) {
  const char* const doing = "gyre_set_active";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    std::chrono::nanoseconds timeout;
    GYRE_C_TRY(use_for(doing, runtime, timeout_ns, used, timeout));
    return status_of(active != 0 ? used->runtime.activate(timeout) : used->runtime.deactivate(timeout));
  });
}

gyre_status gyre_drain(gyre_runtime runtime, int64_t timeout_ns) {
  const char* const doing = "gyre_drain";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    std::chrono::nanoseconds timeout;
    GYRE_C_TRY(use_for(doing, runtime, timeout_ns, used, timeout));
    return status_of(used->runtime.drain(timeout));
  });
}

gyre_status gyre_on_told(gyre_runtime runtime, uint64_t type_id, gyre_told_handler handler, void* context) {
  const char* const doing = "gyre_on_told";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    if (handler == nullptr) {
      used->runtime.on(type_id, {});
      return GYRE_OK;
    }
    used->runtime.on(type_id, [=](const FromActor& from, std::span<const capnp::word> body) {
      const std::string actor(from.type);  // ended by a 0
      const gyre_told told{sizeof told, actor.c_str(),     from.key,    type_id,
                           body.data(), body.size_bytes(), from.worker, 0};
      handler(context, &told);
    });
    return GYRE_OK;
  });
}

gyre_status gyre_relaunch(gyre_runtime runtime, int64_t timeout_ns) {
  const char* const doing = "gyre_relaunch";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    std::chrono::nanoseconds timeout;
    GYRE_C_TRY(use_for(doing, runtime, timeout_ns, used, timeout));
    used->runtime.relaunch(timeout);
    return GYRE_OK;
  });
}

gyre_status gyre_terminate(gyre_runtime runtime, int64_t timeout_ns, gyre_termination* report) {
  const char* const doing = "gyre_terminate";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    std::chrono::nanoseconds timeout;
    GYRE_C_TRY(use_for(doing, runtime, timeout_ns, used, timeout));
    if (report != nullptr) GYRE_C_TRY(check_struct(doing, "report", report, sizeof *report));
    const Termination end = used->runtime.terminate(timeout);
    if (report != nullptr) {
      write_struct(report,
                   gyre_termination{0, end.worker_stuck, end.books.balanced(), end.uptime_s, end.terminate_ms,
                                    end.sender_stuck, end.reader_stuck, end.unfinished, end.buffers_stuck});
    }
    return GYRE_OK;
  });
}

gyre_status gyre_runtime_release(gyre_runtime runtime) {
  const char* const doing = "gyre_runtime_release";
  return guarded(doing, [&]() -> gyre_status {
    {
      Use<Runtimes> used;
      GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
      try {
        used->runtime.terminate(used->runtime.options().timeout);
      } catch (const Error& error) {
        if (error.status() != Status::forked) throw;  // of a parent's there is nothing to end
      }
    }
    return bad_handle(Runtimes::table().remove(runtime), doing, Runtimes::what, runtime);
  });
}
