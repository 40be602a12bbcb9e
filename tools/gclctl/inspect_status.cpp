// gclctl inspect status: what the status log says of transaction ids.
#include <fmt/format.h>

#include <charconv>

#include "bufmgr/pool_layout.hpp"
#include "extension/engine/txn/txn_status.hpp"
#include "extension/engine/txn/txn_words.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/inspect.hpp"

namespace gclctl {
namespace {

using coherence::NodeId;
using coherence::PoolView;
using engine::StatusWord;
using engine::TxnId;
using engine::TxnState;

const char* name_of(TxnState state) {
  static constexpr const char* kNames[] = {"unused",    "running", "savepoint", "prepared", "committing",
                                           "committed", "aborted", "pinned",    "skipped"};
  static_assert(std::size(kNames) == size_t(TxnState::kSkipped) + 1);
  return size_t(state) < std::size(kNames) ? kNames[size_t(state)] : "?";
}

std::string id_text(TxnId id) { return fmt::format("{}:{}", id.node().value, id.sequence()); }

bool number_of(const std::string& text, uint64_t* to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
  return error == std::errc() && end == text.data() + text.size();
}

// NODE:SEQUENCE, or both in one number, as rows and other words have them.
TxnId id_named(const std::string& name, uint32_t nodes) {
  const size_t colon = name.find(':');
  uint64_t node = 0, sequence = 0;
  const bool good = colon == std::string::npos
                        ? number_of(name, &sequence)
                        : number_of(name.substr(0, colon), &node) && number_of(name.substr(colon + 1), &sequence);
  if (!good) fail("\"{}\" is not a transaction id: write NODE:SEQUENCE, as 2:1234, or its raw number", name);
  if (colon != std::string::npos && node >= nodes)
    fail("there is no node {}: the pool has room for nodes 0 to {}", node, nodes - 1);
  const TxnId id = colon == std::string::npos ? TxnId{sequence} : TxnId::make({uint8_t(node)}, sequence);
  if (id.node().value >= nodes || id.raw >> TxnId::kBits != 0) fail("no transaction of this pool has the id {}", name);
  return id;
}

std::string meaning(StatusWord word) {
  switch (word.state()) {
    case TxnState::kUnused:
      return word.payload() == 0 ? ", by none ever" : fmt::format(", for the id with sequence {}", word.payload());
    case TxnState::kActive:
    case TxnState::kPrepared:
    case TxnState::kCommitting:
      return fmt::format(", session {}, low bits of the sequence {}", word.session().value, word.payload() >> 16);
    case TxnState::kCommitted:
      return fmt::format(" at {}", word.cts().value);
    case TxnState::kSub:
    case TxnState::kAborted:
      return word.parent().valid() ? fmt::format(", of {}", id_text(word.parent())) : "";
    default:
      return "";
  }
}

uint64_t word_at(PoolView& pool, coherence::PoolAddress at) { return pool.word(at).value_or(0); }

}  // namespace

int inspect_status(PoolView& pool, const std::vector<std::string>& ids) {
  const auto words_at = pool.region(int(bufmgr::Region::kTxnWords)),
             log_at = pool.region(int(bufmgr::Region::kStatusLog));
  const uint32_t nodes = pool.header().nodes_max;
  if (words_at.bytes <= 1024 + nodes * 64u || log_at.bytes / 8 / nodes < 64) fail("the pool has no status log");
  const engine::TxnWords words({words_at.at, words_at.bytes}, {log_at.at, log_at.bytes}, nodes, ~uint32_t{0});
  fmt::print("clock    {}\n", word_at(pool, words.clock()));
  for (uint32_t n = 0; n < nodes && ids.empty(); n++) {
    const NodeId node{uint8_t(n)};
    const uint64_t reserved = word_at(pool, words.reserved(node));
    if (reserved == 0) continue;
    fmt::print(
        "node {}   ids assigned up to {} at most, {} and below are not in the ring, {} and below frozen, {} and "
        "below swept; bound {}, {} words\n",
        n, reserved, word_at(pool, words.low_water(node)), word_at(pool, words.frozen(node)),
        word_at(pool, words.swept(node)), word_at(pool, words.bound(node)), words.slots());
  }
  for (const std::string& name : ids) {
    const TxnId id = id_named(name, nodes);
    const StatusWord word{word_at(pool, words.status(id))};
    const uint64_t low = word_at(pool, words.low_water(id.node())), frozen = word_at(pool, words.frozen(id.node()));
    fmt::print("id       {} (raw {})\n", id_text(id), id.raw);
    if (id.sequence() > word_at(pool, words.reserved(id.node()))) {
      fmt::print("  was never assigned\n");
    } else if (id.sequence() <= low && word_at(pool, words.overflow_root(id.node())) == 0) {
      fmt::print("  is frozen: committed for everybody, or in the list of aborted ids\n");
    } else if (id.sequence() <= frozen) {
      fmt::print("  is frozen: committed for everybody, or in the list of aborted ids\n");
    } else if (id.sequence() <= low) {
      fmt::print("  its word is on a page of status words, unless it is pinned in the ring\n");
    }
    fmt::print("  word     {:016x}: {}{}{}\n", word.raw, name_of(word.state()), meaning(word),
               id.sequence() <= low ? " (of another id, perhaps)" : "");
  }
  return 0;
}

}  // namespace gclctl
