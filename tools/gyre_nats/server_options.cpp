#include "server_options.hpp"

namespace gyre::tools {

void add_server_options(ProgramCommand command, nats::ConnectionOptions& connection) {
  const auto add_file = [&](const char* name, std::string& file, const char* text) {
    command.add_option(name, file, text).type_name("FILE").group("The server");
  };
  command.add_option("--server", connection.servers, "URL of a server; of a cluster: several, with commas")
      .separated_by(',')
      .one_value_each()
      .type_name("URL")
      .group("The server");
  add_file("--creds", connection.credentials_file, "credentials: a JWT and its key, as nsc writes");
  add_file("--tls-ca", connection.ca_file, "trusted certificates, PEM: connects by TLS");
  add_file("--tls-cert", connection.certificate_file, "this program's certificate, PEM");
  add_file("--tls-key", connection.key_file, "the key of --tls-cert, PEM");
}

}  // namespace gyre::tools
