// gyre-ask: sends one request to an actor of a namespace on NATS, and shows the reply.
#include <fmt/format.h>
#include <unistd.h>
#include <gyre/runtime/nats/headers.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <random>

#include "command_line.hpp"
#include "common_options.hpp"
#include "requests.hpp"
#include "schema_file.hpp"
#include "server_options.hpp"

namespace gyre::tools {
namespace {

enum AskExit { answered = 0, failed = 1, wrong_usage = 2, no_node = 3 };

struct AskSettings {
  nats::ConnectionOptions connection;
  std::string namespace_name = "default";
  std::string actor, key, request, text;
  std::string schema, type, reply, id;
  std::vector<std::string> folders;
  bool tell = false, durable = false;
  std::optional<uint32_t> timeout_ms;
};

void add_options(ProgramCommand command, AskSettings& settings) {
  command.add_option("actor", settings.actor, "the actor's type, such as my::Counter").type_name("NAME");
  command.add_option("key", settings.key, "the actor's key").type_name("NUMBER");
  command.add_option("request", settings.request, "the request's struct in --schema").type_name("NAME");
  command
      .add_option("text", settings.text,
                  "the request, such as '(amount = 5)'; without it, a stream is read from standard input")
      .type_name("TEXT");
  const std::string messages = "The messages", server = "The server";
  const auto schema = command.add_option("--schema", settings.schema, "the messages' schema, FILE.capnp")
                          .type_name("FILE")
                          .group(messages);
  command
      .add_option("-I,--import", settings.folders,
                  "folder of schemas that are imported with a leading slash; may be repeated")
      .type_name("DIR")
      .one_value_each()
      .group(messages);
  command.add_option("--reply", settings.reply, "the reply's struct: show it as text, not as a stream")
      .type_name("NAME")
      .group(messages);
  command
      .add_option("--type", settings.type,
                  "in place of a schema: the request's type id, 16 hexadecimal digits")
      .type_name("ID")
      .excludes(schema)
      .group(messages);
  const auto tell = command.add_flag("--tell", settings.tell, "wait for no reply: handled at most once");
  command
      .add_flag("--durable", settings.durable,
                "a durable tell: ends once JetStream has stored it, and prints its id")
      .excludes(tell);
  command.add_option("--id", settings.id, "the id of a durable tell (default: a random one)").type_name("ID");
  command
      .add_option("--timeout", settings.timeout_ms,
                  "milliseconds until the request expires (default: asks 5000, tells never)")
      .type_name("MS")
      .range(1u, 1'000'000'000u);
  command.add_option("--namespace", settings.namespace_name, "the nodes' namespace")
      .show_default()
      .group(server);
  add_server_options(command, settings.connection);
  command.footer(
      "gyre-ask my::Counter 17 Add '(amount = 5)' --schema counter.capnp --reply Sum\n\n"
      "Exit: 0 the request was answered, sent or stored, 1 it failed, 2 bad usage, 3 no server, no "
      "namespace,\n"
      "no node or no reply.");
}

uint64_t number_in(const std::string& what, const std::string& text, int base) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw BadOptions(fmt::format("reading {}: \"{}\" is no {} number below 2^64", what, text,
                                 base == 16 ? "hexadecimal" : "decimal"));
  }
  return number;
}

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string standard_input() {
  if (isatty(STDIN_FILENO) != 0) {
    throw BadOptions(
        "reading the request: give it as text, such as '(amount = 5)' with --schema, or a stream "
        "on standard input");
  }
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

ActorRequest request_of(const AskSettings& settings, const std::optional<SchemaFile>& schema) {
  ActorRequest request;
  request.actor = settings.actor;
  request.key = number_in("the key", settings.key, 10);
  if (!nats::is_name(settings.namespace_name)) {
    throw BadOptions(fmt::format("reading --namespace: \"{}\" is not 1 to 32 letters, digits, _ and -",
                                 settings.namespace_name));
  }
  if (schema) {
    if (settings.request.empty()) throw BadOptions("reading the request: name its struct in --schema");
    request.type_id = schema->type_id(settings.request);
    if (!settings.reply.empty()) schema->type_id(settings.reply);
  } else if (!settings.type.empty()) {
    if (!settings.request.empty() || !settings.reply.empty()) {
      throw BadOptions("reading the messages: text and names of structs need --schema in place of --type");
    }
    request.type_id = number_in("--type", settings.type, 16);
  } else {
    throw BadOptions("reading the request: give --schema and the request's struct, or --type");
  }
  request.body = settings.text.empty() ? standard_input() : schema->encode(settings.request, settings.text);
  if (settings.timeout_ms) {
    request.timeout = std::chrono::milliseconds(*settings.timeout_ms);
  } else if (!settings.tell && !settings.durable) {
    request.timeout = std::chrono::milliseconds(5000);
  }
  request.id = settings.id.empty() && settings.durable ? random_id() : settings.id;
  if (request.id.size() > nats::max_id_bytes ||
      std::any_of(request.id.begin(), request.id.end(), [](char c) { return c < '!' || c > '~'; })) {
    throw BadOptions(fmt::format("reading --id: \"{}\" is not 1 to {} characters from ! to ~", request.id,
                                 nats::max_id_bytes));
  }
  return request;
}

int show(const ActorReply& reply, const AskSettings& settings, const std::optional<SchemaFile>& schema) {
  if (reply.status != nats::status::ok) {
    const std::string status = reply.status.empty() ? "a reply without a status" : reply.status;
    const bool has_status = reply.reason.starts_with(status + ":");
    std::cerr << fmt::format("gyre-ask: {}{}\n", has_status ? "" : status + ": ", reply.reason);
    return reply.status == nats::status::no_such_node || reply.status == "no_reply" ? no_node : failed;
  }
  if (reply.body.empty() || settings.reply.empty()) {
    std::cout << reply.body << std::flush;
  } else {
    std::cout << schema->decode(settings.reply, reply.body) << std::endl;
  }
  return std::cout ? answered : failed;
}

int send(const ActorRequest& request, const AskSettings& settings, NamespaceClient& client,
         const std::optional<SchemaFile>& schema) {
  if (settings.durable) {
    const StoredTell stored = client.tell_durably(request);
    std::cout << fmt::format("{} is message {} of {}{}", request.id, stored.sequence, stored.stream,
                             stored.duplicate ? ", where it was already" : "")
              << std::endl;
    return answered;
  }
  if (settings.tell) {
    client.tell(request);
    return answered;
  }
  return show(client.ask(request), settings, schema);
}

int ask(const AskSettings& settings) {
  int exit_code = wrong_usage;
  try {
    std::optional<SchemaFile> schema;
    if (!settings.schema.empty()) schema.emplace(settings.schema, settings.folders);
    const ActorRequest request = request_of(settings, schema);
    exit_code = no_node;
    nats::detail::Connection connection(settings.connection, "gyre-ask", 1);
    NamespaceClient client(connection, settings.namespace_name);
    exit_code = failed;
    return send(request, settings, client, schema);
  } catch (const std::exception& error) {
    std::cerr << "gyre-ask: " << error.what() << "\n";
    return exit_code;
  }
}

}  // namespace
}  // namespace gyre::tools

int main(int argc, char** argv) {
  using namespace gyre::tools;
  Program program("Sends one request to an actor on NATS, and shows the reply.", "gyre-ask",
                  Program::Subcommands::none);
  AskSettings settings;
  add_options(program.command(), settings);
  if (const auto exit_code = program.parse(argc, argv)) return *exit_code;
  return ask(settings);
}
