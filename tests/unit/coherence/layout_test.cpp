// What nodes of other builds read in a pool's files and in each other's arenas.  An author who changes a value here
// changes the version beside it, too (pool.bound-to-layout, pool.one-protocol; docs/UPGRADING.md): compilers, options
// and sanitizers do not change any.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "coherence/member/arena.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {
namespace {

using Values = std::vector<size_t>;

TEST(Layout, OfWhatASavedPoolHas) {
  ASSERT_EQ(kPoolFormatVersion, 18u);
  EXPECT_EQ((Values{kPageSize, kPoolHeaderBytes, kRegionsMax, kMemoryNodesMax, kNodesMax, kCompatibilityMax}),
            (Values{8192, 65536, 16, 64, 58, 4096}));
  EXPECT_EQ((Values{offsetof(PoolHeader, format_version), offsetof(PoolHeader, block_size),
                    offsetof(PoolHeader, nodes_max), offsetof(PoolHeader, state), offsetof(PoolHeader, pool_id),
                    offsetof(PoolHeader, bytes), offsetof(PoolHeader, memory_nodes), offsetof(PoolHeader, memory_node),
                    offsetof(PoolHeader, saves), offsetof(PoolHeader, region), offsetof(PoolHeader, memory_bytes),
                    offsetof(PoolHeader, compatibility), offsetof(PoolHeader, protocol)}),
            (Values{8, 12, 16, 20, 24, 32, 40, 44, 48, 56, 312, 824, 4920}));
  EXPECT_EQ((Values{sizeof(NodeTable), sizeof(NodeEntry), offsetof(NodeTable, view), offsetof(NodeTable, repairable),
                    offsetof(NodeTable, after_death), offsetof(NodeTable, fence_reason), offsetof(NodeTable, node),
                    offsetof(NodeEntry, incarnation), offsetof(NodeEntry, quiesced)}),
            (Values{4032, 64, 8, 24, 32, 48, 320, 8, 40}));
}

// Sizes of counters, too: they lie in a session's slot, before the requests that peers look for there.
TEST(Layout, OfWhatNodesReadInEachOthersArenas) {
  ASSERT_EQ(kProtocolVersion, 3u);
  EXPECT_EQ((Values{sizeof(LatchWord), sizeof(Line), sizeof(SessionSlot), sizeof(RequestSlot), sizeof(Inbox),
                    sizeof(WakeupEvent), kSlotsPerSession, kSessionsMax}),
            (Values{8, 256, 2688, 576, 520, 8, 4, 1024}));
  EXPECT_EQ((Values{sizeof(ArenaHeader), offsetof(ArenaHeader, layout), offsetof(ArenaHeader, wakeup),
                    offsetof(ArenaHeader, inbox_peers), offsetof(ArenaHeader, inbox), offsetof(ArenaHeader, event)}),
            (Values{31232, 16, 128, 192, 768, 30976}));
  EXPECT_EQ((Values{offsetof(RequestSlot, page), offsetof(RequestSlot, line), offsetof(RequestSlot, serial),
                    offsetof(RequestSlot, kind), offsetof(RequestSlot, reply), offsetof(SessionSlot, slot)}),
            (Values{8, 16, 24, 32, 72, 384}));
}

}  // namespace
}  // namespace coherence
