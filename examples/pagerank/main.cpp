// PageRank by actors. A vertex counts the shares that it gets, and begins its next round when all have
// arrived. The program tells each vertex to begin, and compares the ranks with those of a plain computation.
#include <gyre/gyre.hpp>
#include <pagerank_actors_sources.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <pagerank/rank.hpp>
#include <pagerank/rank.official.hpp>

using namespace pagerank;

namespace {

constexpr uint32_t vertices = 500;

using Graph = std::vector<std::vector<uint32_t>>;  // where the edges of each vertex lead

// A ring, so that each vertex has an edge to it and one from it, and random edges, most to low numbers.
Graph make_graph() {
  std::mt19937_64 random(6);
  Graph graph(vertices);
  for (uint32_t v = 0; v < vertices; ++v) {
    graph[v].push_back((v + 1) % vertices);
    for (uint64_t more = random() % most_edges; more != 0; --more) {
      graph[v].push_back(uint32_t(std::min(random() % vertices, random() % vertices)));
    }
  }
  return graph;
}

std::vector<uint64_t> computed_ranks(const Graph& graph) {
  std::vector<uint64_t> ranks(vertices, one);
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<uint64_t> shares(vertices);
    for (uint32_t v = 0; v < vertices; ++v) {
      for (const uint32_t to : graph[v]) shares[to] += share_of(ranks[v], uint32_t(graph[v].size()));
    }
    std::transform(shares.begin(), shares.end(), ranks.begin(), rank_of);
  }
  return ranks;
}

gyre::Address<Vertex> vertex(size_t number) { return {.key = number}; }

// Waits until each vertex has its edges: shares from other vertices may overtake what the program tells.
void connect(gyre::Client client, const Graph& graph) {
  std::vector<uint32_t> incoming(vertices);
  for (const auto& edges : graph) {
    for (const uint32_t to : edges) ++incoming[to];
  }
  for (uint32_t v = 0; v < vertices; ++v) {
    const auto fill = [&](Edges::Builder edges) {
      edges.setTo(kj::arrayPtr(graph[v].data(), graph[v].size()));
      edges.setIncoming(incoming[v]);
    };
    client.tell_with_receipt<Edges>(vertex(v), fill).get().value();
  }
}

// Asks a vertex until it has done the last round.
uint64_t await_rank(gyre::Client client, uint32_t v) {
  for (;;) {
    const auto reply = client.ask<RankRequest>(vertex(v), [](RankRequest::Builder) {}).get();
    if (reply.value()->getLast()) return reply.value()->getRank();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 4;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Vertex>(pagerank_actors::sources), options);
  gyre::Client client = runtime.client();

  const Graph graph = make_graph();
  connect(client, graph);
  if (!client.tell_many<Begin>(vertex, vertices, [](size_t, Begin::Builder) {})) return 1;

  const std::vector<uint64_t> expected = computed_ranks(graph);
  uint32_t wrong = 0;
  for (uint32_t v = 0; v < vertices; ++v) {
    if (await_rank(client, v) != expected[v]) ++wrong;
  }
  std::printf("%u vertices, %u rounds, %u wrong ranks\n", vertices, rounds, wrong);
  const auto highest = std::max_element(expected.begin(), expected.end());
  std::printf("vertex %ld has the highest rank, %.3f\n", highest - expected.begin(), double(*highest) / one);

  const gyre::Books books = runtime.terminate().books;
  std::printf("between actors: %lu messages, %lu handled\n", books.mail.sent, books.mail.processed);
  return wrong == 0 && books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
