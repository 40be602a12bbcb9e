// Of tcp.exactly-once.  Connections that break in the middle of anything, greetings and handshakes too, lose no batch
// and carry none out twice, and no outcome is unknown.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "region.hpp"
#include "tests/support/cutting_proxy.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace coherence::tcp {
namespace {

constexpr uint64_t kBytesServed = 1 << 20;

struct Way {
  const char* name;
  bool with_key;
  size_t bytes;  // that a connection carries
  uint64_t cuts;
};
std::ostream& operator<<(std::ostream& o, const Way& way) { return o << way.name; }

class TcpExactlyOnce : public testing::TestWithParam<Way> {};

// Each session adds to a word of all, moves pages of its own, and counts.
TEST_P(TcpExactlyOnce, ThoughConnectionsBreak) {
  const gcl_test::SocketDirectory directory;
  const gcl_test::SharedBytes region(kBytesServed);
  const std::string key = GetParam().with_key ? directory.key() : "";
  const gcl_test::ServedNode memory_node(
      {.id = kHere, .at = region.at(), .bytes = kBytesServed, .listen = directory.socket("memory"), .key = key});
  const gcl_test::CuttingProxy proxy(directory.path() + "/proxy", directory.path() + "/memory", GetParam().bytes,
                                     gcl_test::seed(5));
  gcl_test::WorkedPort node({.memory_nodes = {{kHere, directory.socket("proxy")}}, .key = key});
  const uint64_t cuts = GetParam().cuts * uint64_t(gcl_test::longer());
  std::atomic<uint64_t> added{0};
  std::vector<std::thread> sessions;
  for (int s = 0; s < 3; s++)
    sessions.emplace_back([&, s] {
      Counters counters{};
      TcpMemory memory(node.port(), counters);
      const PoolAddress mine = PoolAddress::at(kHere, uint64_t(s + 1) * 2 * kPageSize);
      std::vector<std::byte> page(kPageSize), read(kPageSize);
      uint64_t before = 0;
      for (uint64_t round = 0; proxy.cuts() < cuts; round++) {
        memset(page.data(), int(round % 251 + 1), page.size());
        const bool large = round % 8 == 0 && GetParam().bytes > 4 * kPageSize;  // else it would hardly ever arrive
        Batch batch(kHere);
        if (large) batch.write(mine, page.data(), kPageSize);
        const int all = batch.faa(PoolAddress::at(kHere, 0), 1), own = batch.faa(mine + kPageSize, 1);
        if (large) batch.read(mine, read.data(), kPageSize);
        ASSERT_TRUE(memory.run(batch).ok()) << "an outcome is unknown";
        EXPECT_TRUE(round == 0 || batch.op(all).old > before);
        EXPECT_EQ(batch.op(own).old, round) << "not once";
        if (large) {
          EXPECT_EQ(read, page);
        }
        before = batch.op(all).old;
        added++;
      }
    });
  for (auto& session : sessions) session.join();
  EXPECT_GE(proxy.cuts(), cuts);
  Counters counters{};
  TcpMemory memory(node.port(), counters);
  EXPECT_EQ(*memory.load(PoolAddress::at(kHere, 0)), added.load());
  EXPECT_EQ(memory_node.links_ended(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpExactlyOnce,
                         testing::Values(Way{"plain_in_greetings", false, 1500, 20}, Way{"plain", false, 60000, 50},
                                         Way{"protected_in_handshakes", true, 2500, 20},
                                         Way{"protected", true, 60000, 50}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace coherence::tcp
