#include "coherence/transport/tcp/member/member_frames.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "coherence/base/byte_reader.hpp"
#include "coherence/base/member_state.hpp"
#include "coherence/transport/net/frame.hpp"
#include "coherence/transport/tcp/member/patience.hpp"

namespace coherence::tcp {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(AnswerFrame) + sizeof(HeaderRecord) <= net::kPayloadMax && kTableBytesMax <= net::kPayloadMax);

Errc wrong(Problem* problem, const char* what) { return problem->set(Errc::kCorrupt, "%s", what); }

// It ends, and behind its end are zeros.
bool is_text(std::span<const char> bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), 0);
  return end != bytes.end() && std::all_of(end, bytes.end(), [](char c) { return c == 0; });
}

bool is_flag(uint32_t word) { return word <= 1; }
bool are_nodes(uint64_t bits, uint32_t nodes_max) { return nodes_max >= 64 || bits >> nodes_max == 0; }
bool is_node(uint8_t id) { return id < kNodesMax; }
bool is_count(uint64_t memory_nodes) { return memory_nodes <= uint64_t(kMemoryNodesMax); }

// The fields that the call uses; all else is 0.
bool is_call(const CallFrame& frame) {
  CallFrame used;
  used.tag = frame.tag;
  used.call = frame.call;
  switch (frame.call) {
    case Call::kBeginChange:
      used.tries = frame.tries;
      break;
    case Call::kForget:
      used.nodes = frame.nodes;
      break;
    case Call::kPublish:
      used.pid = frame.pid;
      used.protocol = frame.protocol;
      memcpy(used.listens_at, frame.listens_at, sizeof used.listens_at);
      [[fallthrough]];
    case Call::kWithdraw:
      used.incarnation = frame.incarnation;
      [[fallthrough]];
    case Call::kReserve:
      used.node = frame.node;
      break;
    default:
      break;
  }
  return memcmp(&used, &frame, sizeof used) == 0;
}

bool places_fit(const MemoryNodeRecord& record) {
  constexpr uint64_t kEnd = uint64_t{1} << 48;  // of pages and words together: far behind what there is
  return record.words_at % sizeof(uint64_t) == 0 && record.pages_at % sizeof(uint64_t) == 0 && record.words_at < kEnd &&
         record.pages_at < kEnd && record.pages < uint64_t{1} << 40;
}

}  // namespace

SayingsRecord record_of(const Sayings& sayings) noexcept {
  SayingsRecord record = {};
  record.leaves = sayings.leaving();
  record.reaches = sayings.reached();
  if (const char* reason = sayings.fence_reason()) {
    record.fences = 1;
    put_text(reason, record.fence_reason);
  }
  for (int kind = 0; kind < kSaidKinds; kind++)
    for (uint8_t n = 0; n < kNodesMax; n++) record.said[kind][n] = sayings.said(Said(kind), NodeId{n});
  return record;
}

void put_text(const char* from, std::span<char> to) noexcept {
  const size_t length = std::min(strlen(from), to.size() - 1);
  memcpy(to.data(), from, length);
  memset(to.data() + length, 0, to.size() - length);
}

Status decode_call(std::span<const std::byte> frame, CallFrame* call, Problem* problem) noexcept {
  if (frame.size() != sizeof *call) return wrong(problem, "a call of another length");
  uint8_t which;
  memcpy(&which, frame.data() + offsetof(CallFrame, call), sizeof which);
  if (which > uint8_t(kLastCall)) return wrong(problem, "a call that there is not");
  memcpy(static_cast<void*>(call), frame.data(), sizeof *call);
  if (!is_call(*call)) return wrong(problem, "a call with more than it needs");
  if (!is_flag(call->tries)) return wrong(problem, "a call that neither waits nor tries");
  if (!is_node(call->node)) return wrong(problem, "a call about a node that there cannot be");
  if (!is_text(call->listens_at)) return wrong(problem, "a call with an address that does not end");
  return {};
}

Status decode_answer(std::span<const std::byte> frame, AnswerFrame* answer, HeaderRecord* header,
                     Problem* problem) noexcept {
  ByteReader reader(frame);
  uint8_t which[2];
  if (frame.size() < sizeof *answer) return wrong(problem, "an answer that is too short");
  memcpy(which, frame.data() + offsetof(AnswerFrame, call), sizeof which);
  static_assert(offsetof(AnswerFrame, error) == offsetof(AnswerFrame, call) + 1);
  if (which[0] > uint8_t(kLastCall) || which[1] > uint8_t(kLastErrc))
    return wrong(problem, "an answer that there is not");
  (void)reader.take(static_cast<void*>(answer), sizeof *answer);
  if (answer->zero != 0 || !is_text(answer->problem)) return wrong(problem, "an answer of another format");
  if (answer->call == Call::kHeader && answer->error == Errc::kOk) {
    if (!reader.take(header, sizeof *header)) return wrong(problem, "an answer without the pool's header");
    if (!is_text(header->compatibility)) return wrong(problem, "compatibility lines that do not end");
    if (header->nodes_max == 0 || header->nodes_max > uint32_t(kNodesMax) || header->memory_nodes == 0 ||
        header->memory_nodes > uint32_t(kMemoryNodesMax))
      return wrong(problem, "a pool that there cannot be");
    if (!is_flag(uint32_t(std::min<uint64_t>(header->clean, 2)))) return wrong(problem, "a pool of another format");
    for (const auto& region : header->region)
      if (region.offset >> 56 != 0 || region.bytes >> 56 != 0) return wrong(problem, "a region that there cannot be");
  }
  return reader.left().empty() ? Status() : wrong(problem, "an answer that is too long");
}

void encode_table(const Table& table, std::span<const std::byte> (&pieces)[3]) noexcept {
  pieces[0] = bytes_of(table.head);
  pieces[1] = std::as_bytes(std::span(table.node, table.head.nodes_max));
  pieces[2] = std::as_bytes(std::span(table.memory_node, table.head.memory_nodes));
}

Status decode_table(std::span<const std::byte> frame, Table* table, Problem* problem) noexcept {
  ByteReader reader(frame);
  TableHead& head = table->head;
  if (!reader.take(&head, sizeof head)) return wrong(problem, "a table that is too short");
  if (head.nodes_max == 0 || head.nodes_max > uint32_t(kNodesMax) || head.memory_nodes == 0 ||
      head.memory_nodes > uint32_t(kMemoryNodesMax))
    return wrong(problem, "a table that no pool has");
  if (!is_flag(head.fenced) || !is_flag(head.repairs_deaths) || !is_flag(head.records_deaths) ||
      !is_text(head.fence_reason) || head.patience_ms < kPatienceMinMs || head.patience_ms > kPatienceMaxMs ||
      head.young >= head.memory_nodes || !are_nodes(head.repairable | head.recorded, head.nodes_max))
    return wrong(problem, "a table of another format");
  if (reader.left().size() != head.nodes_max * sizeof(NodeRecord) + head.memory_nodes * sizeof(MemoryNodeRecord))
    return wrong(problem, "a table of another length");
  (void)reader.take(static_cast<void*>(table->node), head.nodes_max * sizeof(NodeRecord));
  (void)reader.take(static_cast<void*>(table->memory_node), head.memory_nodes * sizeof(MemoryNodeRecord));
  for (const NodeRecord& node : std::span(table->node, head.nodes_max))
    if (node.state > uint32_t(MemberState::kSwept) || !is_count(node.reaches) || !is_text(node.listens_at))
      return wrong(problem, "a table with a node of another format");
  for (const MemoryNodeRecord& node : std::span(table->memory_node, head.memory_nodes))
    if (!places_fit(node) || !is_text(node.address))
      return wrong(problem, "a table with a memory node of another format");
  return {};
}

Status decode_sayings(std::span<const std::byte> frame, SayingsRecord* sayings, Problem* problem) noexcept {
  if (frame.size() != sizeof *sayings) return wrong(problem, "sayings of another length");
  memcpy(sayings, frame.data(), sizeof *sayings);
  if (!is_flag(sayings->leaves) || !is_flag(sayings->fences) || !is_count(sayings->reaches) ||
      !is_text(sayings->fence_reason))
    return wrong(problem, "sayings of another format");
  if (sayings->fences == 0 && sayings->fence_reason[0] != 0) return wrong(problem, "a reason for no fence");
  return {};
}

Status decode_memory_node(std::span<const std::byte> frame, MemoryNodeFrame* node, Problem* problem) noexcept {
  if (frame.size() != sizeof *node) return wrong(problem, "what a memory node says of itself, of another length");
  memcpy(node, frame.data(), sizeof *node);
  if (!places_fit(node->places) || !is_text(node->places.address))
    return wrong(problem, "a memory node of another format");
  if (node->paths > 1) return wrong(problem, "a memory node that is reached in no way");
  const auto inside = [&](uint64_t at, uint64_t bytes) { return at <= node->bytes && bytes <= node->bytes - at; };
  if (!inside(node->places.words_at, PagePlaces::rows_for(node->places.pages) * 64) ||
      !inside(node->places.pages_at, node->places.pages * kPageSize) ||
      node->pages_bytes / kPageSize != node->places.pages)
    return wrong(problem, "a memory node whose pages are not in it");
  return node->places.address[0] != 0 ? Status() : wrong(problem, "a memory node without an address");
}

Status decode_order(std::span<const std::byte> frame, OrderFrame* order, Problem* problem) noexcept {
  if (frame.size() != sizeof *order) return wrong(problem, "an order of another length");
  uint32_t which;
  memcpy(&which, frame.data(), sizeof which);
  if (which > uint32_t(kLastOrder)) return wrong(problem, "an order that there is not");
  memcpy(static_cast<void*>(order), frame.data(), sizeof *order);
  return order->zero == 0 ? Status() : wrong(problem, "an order of another format");
}

Status decode_done(std::span<const std::byte> frame, DoneFrame* done, Problem* problem) noexcept {
  if (frame.size() != sizeof *done) return wrong(problem, "what came of an order, of another length");
  uint32_t which;
  memcpy(&which, frame.data(), sizeof which);
  if (which > uint32_t(kLastOrder)) return wrong(problem, "what came of an order that there is not");
  memcpy(static_cast<void*>(done), frame.data(), sizeof *done);
  if (done->error > uint32_t(kLastErrc) || !is_text(done->problem))
    return wrong(problem, "what came of an order, of another format");
  return {};
}

}  // namespace coherence::tcp
