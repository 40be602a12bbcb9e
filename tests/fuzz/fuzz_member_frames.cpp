// What is taken for a frame about members, of any bytes, is one: it has that frame and no other, its words are within
// their bounds, and a table of any order is a table for the Mirror, and says there what it says.
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/member/mirror.hpp"

namespace {

using namespace coherence;       // NOLINT
using namespace coherence::tcp;  // NOLINT

bool same(std::span<const std::byte> frame, std::span<const std::byte> from, std::span<const std::byte> then = {}) {
  return frame.size() == from.size() + then.size() && memcmp(frame.data(), from.data(), from.size()) == 0 &&
         (then.empty() || memcmp(frame.data() + from.size(), then.data(), then.size()) == 0);
}

bool ends(std::span<const char> text) { return memchr(text.data(), 0, text.size()) != nullptr; }

void try_call(std::span<const std::byte> frame, Problem* problem) {
  CallFrame call;
  if (!decode_call(frame, &call, problem)) return;
  VERIFY(same(frame, bytes_of(call)) && call.call <= kLastCall && call.node < kNodesMax && ends(call.listens_at));
}

void try_answer(std::span<const std::byte> frame, Problem* problem) {
  AnswerFrame answer;
  const auto header = std::make_unique<HeaderRecord>();
  if (!decode_answer(frame, &answer, header.get(), problem)) return;
  const bool with = answer.call == Call::kHeader && answer.error == Errc::kOk;
  VERIFY(same(frame, bytes_of(answer), with ? bytes_of(*header) : std::span<const std::byte>()));
  VERIFY(ends(answer.problem) && answer.error <= kLastErrc);
  if (with) VERIFY(ends(header->compatibility) && header->nodes_max <= uint32_t(kNodesMax));
}

void look_at(Mirror& mirror, const Table& table) {
  VERIFY(mirror.known() && mirror.nodes_max() == table.head.nodes_max);
  VERIFY(mirror.repairs_deaths() == (table.head.repairs_deaths != 0));
  VERIFY((mirror.fence_word().load() != 0) >= (table.head.fenced != 0));
  const TableChanges members = mirror.members();
  VERIFY(members.repairable().bits == table.head.repairable);
  for (uint8_t n = 0; n < table.head.nodes_max; n++) {
    const NodeInfo info = members.info(NodeId{n});
    VERIFY(uint32_t(info.state) == table.node[n].state && info.incarnation == table.node[n].incarnation);
    char address[kListensAtBytes];
    if (mirror.address_of(NodeId{n}, info.incarnation, address, sizeof address)) VERIFY(ends(address));
  }
  for (uint8_t n = 0; n < mirror.memory_nodes(); n++) VERIFY(mirror.places(MemoryNodeId{n}).pages < uint64_t{1} << 40);
}

void try_table(std::span<const std::byte> frame, Problem* problem) {
  static const auto table = std::make_unique<Table>();
  if (!decode_table(frame, table.get(), problem)) return;
  std::span<const std::byte> pieces[3];
  encode_table(*table, pieces);
  std::vector<std::byte> again;
  for (const auto piece : pieces) again.insert(again.end(), piece.begin(), piece.end());
  VERIFY(same(frame, again));
  alignas(64) static std::byte memory[Mirror::kBytes];
  memset(memory, 0, sizeof memory);
  Mirror& mirror = Mirror::at(memory);
  VERIFY(mirror.take(*table) == (table->head.epoch != 0));
  if (table->head.epoch == 0) return;
  VERIFY(!mirror.take(*table));
  look_at(mirror, *table);
  Table next = {};
  next.head = table->head;
  next.head.epoch++, next.head.repairable = next.head.fenced = 0;
  if (next.head.epoch != 0) VERIFY(mirror.take(next)), look_at(mirror, next);
}

void try_sayings(std::span<const std::byte> frame, Problem* problem) {
  const auto sayings = std::make_unique<SayingsRecord>();
  if (!decode_sayings(frame, sayings.get(), problem)) return;
  VERIFY(same(frame, bytes_of(*sayings)) && ends(sayings->fence_reason) && sayings->leaves <= 1 &&
         sayings->reaches <= uint64_t(kMemoryNodesMax));
}

void try_memory_node(std::span<const std::byte> frame, Problem* problem) {
  MemoryNodeFrame node;
  if (!decode_memory_node(frame, &node, problem)) return;
  VERIFY(same(frame, bytes_of(node)) && ends(node.places.address) && node.paths <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto frame = std::as_bytes(std::span(data + 1, size - 1));
  Problem problem;
  constexpr void (*kTry[])(std::span<const std::byte>, Problem*) = {try_call, try_answer, try_table, try_sayings,
                                                                    try_memory_node};
  kTry[data[0] % std::size(kTry)](frame, &problem);
  return 0;
}
