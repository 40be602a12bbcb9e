#include "extension/engine/txn/txn_notes.hpp"

#include <algorithm>
#include <utility>

#include "bufmgr/log/log_sink.hpp"
#include "bufmgr/log/packing.hpp"

namespace engine {

using coherence::Errc;

namespace {

class Writer {
 public:
  explicit Writer(TxnNote::Kind kind) { *at_++ = std::byte(kind); }
  void put(uint64_t number) { at_ = bufmgr::put_varint(at_, number); }
  std::span<const std::byte> bytes() const { return {bytes_, at_}; }

 private:
  std::byte bytes_[1 + (2 + TxnNote::kIdsMax) * bufmgr::kVarintMax];
  std::byte* at_ = bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  bool take(uint64_t* number) {
    at_ = bufmgr::get_varint(at_, end_, number);
    return at_ != nullptr;
  }
  bool at_end() const { return at_ == end_; }

 private:
  const std::byte *at_, *end_;
};

bool read_commits(Reader& reader, TxnNote* note) {
  uint64_t count, sequence = 0;
  if (!reader.take(&note->host_xid) || !reader.take(&count) || count == 0 || count > TxnNote::kIdsMax) return false;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t distance;
    if (!reader.take(&distance) || distance == 0) return false;
    note->sequences.push_back(sequence += distance);
  }
  return true;
}

bool read_one(Reader& reader, uint64_t beside, TxnNote* note) {
  uint64_t sequence;
  if (beside == 0 || !reader.take(&sequence) || sequence == 0) return false;
  note->kind = TxnNote::kCommits;
  note->host_xid = beside;
  note->sequences.push_back(sequence);
  return true;
}

}  // namespace

void note_reserved(bufmgr::LogSink& log, uint64_t sequence) {
  Writer writer(TxnNote::kReserved);
  writer.put(sequence);
  log.note(writer.bytes());
}

void note_commit(bufmgr::LogSink& log, uint64_t host_xid, std::span<const uint64_t> sequences) {
  if (sequences.size() == 1 && host_xid != 0 && host_xid == log.number_beside_note()) {
    Writer writer(TxnNote::kCommitsOne);
    writer.put(sequences[0]);
    return log.note(writer.bytes());
  }
  while (!sequences.empty()) {
    const auto some = sequences.first(std::min<size_t>(sequences.size(), TxnNote::kIdsMax));
    Writer writer(TxnNote::kCommits);
    writer.put(host_xid);
    writer.put(some.size());
    uint64_t before = 0;
    for (const uint64_t sequence : some) writer.put(sequence - std::exchange(before, sequence));
    log.note(writer.bytes());
    sequences = sequences.subspan(some.size());
  }
}

coherence::Result<TxnNote> read_note(std::span<const std::byte> bytes, uint64_t beside) {
  if (bytes.empty()) return Errc::kCorrupt;
  TxnNote note{.kind = TxnNote::Kind(bytes[0])};
  Reader reader(bytes.subspan(1));
  bool whole = false;
  if (note.kind == TxnNote::kReserved)
    whole = reader.take(&note.reserved);
  else if (note.kind == TxnNote::kCommits)
    whole = read_commits(reader, &note);
  else if (note.kind == TxnNote::kCommitsOne)
    whole = read_one(reader, beside, &note);
  else
    return Errc::kIncompatible;
  if (!whole || !reader.at_end()) return Errc::kCorrupt;
  return note;
}

}  // namespace engine
