#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/launch_message.hpp>

namespace gyre::process {

namespace {

capnp::Text::Reader as_text(std::string_view text, std::string& terminated) {
  terminated = text;
  return {terminated.c_str(), terminated.size()};
}

std::string text_of(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

}  // namespace

capnp::Data::Reader as_data(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

void write_launch(control::Launch::Builder message, const ActorSet& actors, const Options& options,
                  uint32_t runtime_tag) {
  std::string text;
  message.setRuntimeTag(runtime_tag);
  auto set = message.initActors();
  auto types = set.initTypes(uint32_t(actors.types().size()));
  for (uint32_t n = 0; n < types.size(); ++n) types.set(n, as_text(actors.types()[n], text));
  const ActorSources& sources = actors.sources();
  auto headers = set.initHeaders(uint32_t(sources.files.size()));
  for (uint32_t n = 0; n < headers.size(); ++n) {
    headers[n].setName(as_text(sources.files[n].name, text));
    headers[n].setText(as_text(sources.files[n].text, text));
  }
  auto actor_headers = set.initActorHeaders(uint32_t(sources.actor_headers.size()));
  for (uint32_t n = 0; n < actor_headers.size(); ++n)
    actor_headers.set(n, as_text(sources.actor_headers[n], text));
  set.setGridScoped(actors.is_grid_scoped());
  if (!actors.description().empty()) {
    const std::vector<std::byte> description = write_description(actors.description());
    set.setDescription(as_data(description));
  }
  // The engine's errors name all of them; only those of this launch can be of use to it.
  auto ahead = set.initAhead(uint32_t(sources.ahead.size()));
  for (uint32_t n = 0; n < ahead.size(); ++n) {
    const CompiledAhead& compiled = sources.ahead[n];
    ahead[n].setArchitecture(compiled.architecture);
    ahead[n].setBlock(compiled.block);
    ahead[n].setInputs(compiled.inputs);
    ahead[n].setKernel(as_text(compiled.kernel, text));
    ahead[n].setLoweredName(as_text(compiled.lowered_name, text));
    ahead[n].setLoweredDescription(as_text(compiled.lowered_description, text));
    ahead[n].setCompiler(as_text(compiled.compiler, text));
    if (compiled.kernel != actors.kernel() || compiled.block != options.block) continue;
    ahead[n].setCubin({reinterpret_cast<const kj::byte*>(compiled.cubin.data()), compiled.cubin.size()});
  }

  auto to = message.initOptions();
  to.setDevice(options.device);
  to.setWorkers(options.workers);
  to.setBlock(options.block);
  to.setBlocks(options.blocks);
  to.setSlots(options.slots);
  to.setSlotBytes(options.slot_bytes);
  to.setArenaBytes(options.arena_bytes);
  to.setActorsPerWorker(options.actors_per_worker);
  to.setSpillBytes(options.spill_bytes);
  to.setBodyBytes(options.body_bytes);
  to.setBodyPoolBytes(options.body_pool_bytes);
  to.setMaxBuffers(options.max_buffers);
  to.setRegionBudget(options.region_budget);
  to.setVerbose(options.verbose);
  to.setCache(options.cache);
  to.setKeepProgram(as_text(options.keep_program, text));
  to.setFirstLap(options.first_lap);
  to.setLogLevel(uint32_t(log_level()));
}

ActorSet actors_of(control::Launch::Reader message) {
  const auto set = message.getActors();
  std::vector<std::string> types, actor_headers;
  std::vector<SourceText> headers;
  for (const auto type : set.getTypes()) types.push_back(text_of(type));
  for (const auto header : set.getHeaders())
    headers.push_back({text_of(header.getName()), text_of(header.getText())});
  for (const auto header : set.getActorHeaders()) actor_headers.push_back(text_of(header));
  std::vector<ActorDescription> description;
  if (set.getDescription().size() != 0) description = read_description(as_bytes(set.getDescription()));
  const auto view_of = [](auto field) {
    return std::string_view(reinterpret_cast<const char*>(field.begin()), field.size());
  };
  std::vector<CompiledAhead> ahead;
  for (const auto compiled : set.getAhead()) {
    ahead.push_back({compiled.getArchitecture(), compiled.getBlock(), compiled.getInputs(),
                     view_of(compiled.getKernel()), view_of(compiled.getLoweredName()),
                     view_of(compiled.getLoweredDescription()), view_of(compiled.getCompiler()),
                     view_of(compiled.getCubin())});
  }
  return ActorSet::for_engine(std::move(types), std::move(headers), std::move(actor_headers),
                              set.getGridScoped(), std::move(description), ahead);
}

Options options_of(control::Launch::Reader message) {
  const auto from = message.getOptions();
  Options options;
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::in_process;
  options.context = CudaContext::primary;  // nobody else's: a further one would cost time and memory
  options.device = from.getDevice();
  options.transport = TransportKind::pinned;  // at first: BAR is the program's to make
  options.workers = from.getWorkers();
  options.block = from.getBlock();
  options.blocks = from.getBlocks();
  options.slots = from.getSlots();
  options.slot_bytes = from.getSlotBytes();
  options.arena_bytes = from.getArenaBytes();
  options.actors_per_worker = from.getActorsPerWorker();
  options.spill_bytes = from.getSpillBytes();
  options.body_bytes = from.getBodyBytes();
  options.body_pool_bytes = from.getBodyPoolBytes();
  options.max_buffers = from.getMaxBuffers();
  options.region_budget = from.getRegionBudget();
  options.verbose = from.getVerbose();
  options.cache = from.getCache();
  options.keep_program = text_of(from.getKeepProgram());
  options.first_lap = from.getFirstLap();
  return options;
}

}  // namespace gyre::process
