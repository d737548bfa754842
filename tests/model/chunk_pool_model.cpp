// The chunk pool's own source under a model checker.
#include <gyre/bridge/chunk_pool.hpp>

#include "model/model_memory.hpp"

namespace {

using gyre_test::holds;
using gyre_test::ModelMemory;

// Three workers take chunks, write to them, and give them back: each has one owner at a time, who comes after
// all that the one before did with it. `chunks`: fewer than are wanted, so that some are refused; or as many.
template <uint32_t chunks>
struct PoolModel : rl::test_suite<PoolModel<chunks>, 3> {
  using Pool = gyre::ChunkPool<ModelMemory>;
  static constexpr uint32_t rounds = 3;

  ModelMemory::Word state[2];
  ModelMemory::Word links[chunks];
  rl::var<uint32_t> owner[chunks];  // plain memory: the checker finds data races

  void before() {
    for (auto& word : state) word.store(0, rl::mo_relaxed, RL_INFO);
    for (auto& word : links) word.store(0, rl::mo_relaxed, RL_INFO);
    for (auto& chunk : owner) chunk(RL_INFO) = 0;
  }
  void thread(unsigned index) {
    const Pool pool(state, links, chunks);
    for (uint32_t round = 0; round < rounds; ++round) {
      // Two at a time in the second round: they come back in another order.
      const uint32_t most = round == 1 ? 2 : 1;
      uint32_t had[2];
      uint32_t have = 0;
      for (uint32_t n = 0; n < most; ++n) {
        const uint32_t chunk = pool.take();
        if (chunk == Pool::no_chunk) continue;
        RL_ASSERT(chunk < chunks && owner[chunk](RL_INFO) == 0);
        owner[chunk](RL_INFO) = index + 1;
        had[have++] = chunk;
      }
      for (uint32_t n = 0; n < have; ++n) {
        RL_ASSERT(owner[had[n]](RL_INFO) == index + 1);
        owner[had[n]](RL_INFO) = 0;
        pool.give(had[n]);
      }
    }
  }
  void after() {
    // Nothing is lost: all chunks are there.
    const Pool pool(state, links, chunks);
    bool seen[chunks] = {};
    for (uint32_t n = 0; n < chunks; ++n) {
      const uint32_t chunk = pool.take();
      RL_ASSERT(chunk < chunks && !seen[chunk]);
      seen[chunk] = true;
    }
    RL_ASSERT(pool.take() == Pool::no_chunk);
  }
};

}  // namespace

int main() {
  const bool few = holds<PoolModel<2>>("a pool of two chunks for three workers", 200'000);
  const bool enough = holds<PoolModel<4>>("a pool of four chunks for three workers", 200'000);
  return few && enough ? 0 : 1;
}
