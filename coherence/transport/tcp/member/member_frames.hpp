// What memory node 0 and its peers say to each other about members, as bytes.
//
//   call, answer:  of a tool, and to it; an answer to kHeader has the pool's header behind it
//   table:         the node table, where each node listens, and the memory nodes; to nodes, tools, and memory nodes
//   sayings:       of a node (sayings.hpp)
//   memory node:   what another memory node than 0 has, and where it is reached; to memory node 0
//   lease:         of a node, empty: that it arrives is what counts (lease.hpp)
//   order, done:   what memory node 0 has another one do about its saved copy, and what came of it
//
// Words are little-endian.  A frame has one meaning and one length: what says nothing is 0, also behind the end of a
// text.  What is decoded is within its bounds, and nothing else of it is believed (tcp.nothing-believed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/tcp/member/sayings.hpp"

namespace coherence::tcp {

// Types of frames on a link.
inline constexpr uint16_t kCallFrame = 16, kAnswerFrame = 17, kTableFrame = 18, kSayingsFrame = 19,
                          kMemoryNodeFrame = 20, kOrderFrame = 21, kDoneFrame = 22, kLeaseFrame = 23;

inline constexpr uint32_t kListensAtBytes = 144;  // "ip:port", "[v6]:port" or "unix:/path", with its zero

// --- calls

enum class Call : uint8_t {
  kHeader,       // the pool's header
  kBeginChange,  // Membership::begin_change(), and so on
  kEndChange,
  kAllDead,
  kForget,
  kReserve,
  kPublish,
  kWithdraw,
  kClose,
};
inline constexpr Call kLastCall = Call::kClose;

// What a call does not use is 0.
struct CallFrame {
  uint32_t tag = 0;
  Call call = Call::kHeader;
  uint8_t tries = 0;  // kBeginChange: it does not wait
  uint8_t node = 0;   // kReserve, kPublish, kWithdraw
  uint8_t zero = 0;
  uint64_t incarnation = 0;               // kPublish, kWithdraw
  uint64_t nodes = 0;                     // kForget: bits
  int32_t pid = 0;                        // kPublish
  uint32_t protocol = 0;                  // kPublish: of the node
  char listens_at[kListensAtBytes] = {};  // kPublish
};
struct AnswerFrame {
  uint32_t tag = 0;
  Call call = Call::kHeader;
  Errc error = Errc::kOk;
  uint16_t zero = 0;
  uint64_t value = 0;  // kAllDead: nodes, bits; kReserve: the incarnation; kWithdraw: whether the pool is empty
  char problem[sizeof Problem::text] = {};
};
// Of an answer to kHeader.
struct HeaderRecord {
  uint32_t format_version, block_size, nodes_max, memory_nodes;
  uint64_t pool_id, saves;
  uint64_t clean;  // 1: no node is in the pool, and what memory has lost may be loaded (PoolKeeper::is_copy_current)
  struct {
    uint64_t offset, bytes;
  } region[kRegionsMax];
  char compatibility[kCompatibilityMax];
};

// --- the table

struct NodeRecord {
  uint32_t state;  // MemberState
  int32_t pid;
  uint64_t incarnation;
  uint64_t admitted;                 // the incarnation whose batches memory nodes carry out; 0: none's
  uint64_t reaches;                  // so many memory nodes, the first ones, as it says; no change of the table
  char listens_at[kListensAtBytes];  // empty: nowhere
};
struct MemoryNodeRecord {
  uint64_t words_at, pages_at, pages;  // offsets there; how many
  char address[kListensAtBytes];       // empty: memory node 0, which says this; or it has not come yet
};
struct TableHead {
  uint64_t epoch;                 // grows with each change, also from one start of memory node 0 to the next
  uint64_t repairable, recorded;  // bits
  uint64_t saves;
  uint64_t changer;  // the start of the tool that changes members; 0: none does
  uint32_t nodes_max, memory_nodes, protocol;
  uint32_t fenced, repairs_deaths, records_deaths;  // 0 or 1
  uint32_t patience_ms;                             // for how long memory node 0 bears a node's silence
  uint32_t young;  // how many of the last memory nodes some node may not reach yet (tcp.pages-where-all-reach)
  char fence_reason[kFenceReasonBytes];
};
struct Table {
  TableHead head;
  NodeRecord node[kNodesMax];                     // [0, nodes_max)
  MemoryNodeRecord memory_node[kMemoryNodesMax];  // [0, memory_nodes)
};
inline constexpr uint32_t kTableBytesMax = sizeof(Table);

// --- sayings

struct SayingsRecord {
  uint32_t leaves, fences;  // 0 or 1
  uint64_t reaches;         // so many memory nodes, the first ones
  char fence_reason[kFenceReasonBytes];
  uint64_t said[kSaidKinds][kNodesMax];  // Sayings::said()
};
SayingsRecord record_of(const Sayings&) noexcept;

// --- between memory nodes

struct MemoryNodeFrame {
  uint64_t bytes, pages_bytes;  // of its region, and of its pages
  uint64_t saves;               // of the copy that it was loaded from, or has made last
  uint64_t paths;               // 1: nodes reach it by paths beside their links (DirectAccess), and only so; 0
  MemoryNodeRecord places;      // the address is where nodes reach it
};
enum class Order : uint32_t {
  kWrite,  // the copy, beside the one there is
  kPlace,  // it takes that one's place (pool.saved-beside)
};
inline constexpr Order kLastOrder = Order::kPlace;
struct OrderFrame {
  Order order = Order::kWrite;
  uint32_t zero = 0;
  uint64_t saves = 0;  // of the copy
};
struct DoneFrame {
  Order order = Order::kWrite;
  uint32_t error = 0;  // Errc
  uint64_t saves = 0;
  char problem[sizeof Problem::text] = {};
};

static_assert(sizeof(CallFrame) == 32 + kListensAtBytes && sizeof(AnswerFrame) == 16 + sizeof Problem::text);
static_assert(sizeof(NodeRecord) == 32 + kListensAtBytes && sizeof(MemoryNodeRecord) == 24 + kListensAtBytes);
static_assert(sizeof(TableHead) == 72 + kFenceReasonBytes && std::has_unique_object_representations_v<Table>);
static_assert(std::has_unique_object_representations_v<HeaderRecord> &&
              std::has_unique_object_representations_v<SayingsRecord>);
static_assert(std::has_unique_object_representations_v<MemoryNodeFrame> &&
              std::has_unique_object_representations_v<OrderFrame> &&
              std::has_unique_object_representations_v<DoneFrame>);

// kCorrupt, of all: they are none.
Status decode_call(std::span<const std::byte> frame, CallFrame*, Problem*) noexcept;
// `header` is set if the answer has one: kHeader, and kOk.
Status decode_answer(std::span<const std::byte> frame, AnswerFrame*, HeaderRecord* header, Problem*) noexcept;
// Pieces of `table`, one behind the other.
void encode_table(const Table& table, std::span<const std::byte> (&pieces)[3]) noexcept;
Status decode_table(std::span<const std::byte> frame, Table*, Problem*) noexcept;
Status decode_sayings(std::span<const std::byte> frame, SayingsRecord*, Problem*) noexcept;
Status decode_memory_node(std::span<const std::byte> frame, MemoryNodeFrame*, Problem*) noexcept;
Status decode_order(std::span<const std::byte> frame, OrderFrame*, Problem*) noexcept;
Status decode_done(std::span<const std::byte> frame, DoneFrame*, Problem*) noexcept;

// What cannot be copied whole is cut off; behind its end are zeros.
void put_text(const char* from, std::span<char> to) noexcept;

template <class Record>
std::span<const std::byte> bytes_of(const Record& record) noexcept {
  return std::as_bytes(std::span(&record, 1));
}

}  // namespace coherence::tcp
