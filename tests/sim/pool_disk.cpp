#include "pool_disk.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mutation.hpp"
#include "recovery/certain.hpp"

namespace sim {

using coherence::Errc;
using coherence::NodeId;
using coherence::Problem;
using coherence::Result;

namespace {

// As recovery/restart_journal.cpp writes them.
constexpr uint32_t kJoinEntry = 16, kDeathEntry = 17, kDeathWithoutRingEntry = 20;
constexpr size_t kDeathHead = 5 * sizeof(uint64_t);

std::vector<std::byte> entry_of(const std::vector<uint64_t>& words, std::span<const std::byte> more = {}) {
  const auto head = std::as_bytes(std::span(words));
  std::vector<std::byte> all(head.begin(), head.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

const char* checkpoint_step_name(CheckpointStep step) {
  static constexpr const char* kNames[] = {"HolesRead",  "LogsRead", "ImagesWritten",
                                           "LogsSynced", "Replaced", "RingsDropped"};
  return kNames[int(step)];
}

// A node's log, from `from` to `until`.
class PoolDisk::Log final : public recovery::LogSource {
 public:
  Log(const LateLog& log, NodeId node, const recovery::NodeHistory& history, uint64_t from, uint64_t until,
      uint64_t below)
      : kept_(log.kept()), node_(node), history_(history), until_(until), below_(below), position_(from) {
    while (at_ < kept_.size() && kept_[at_].end <= from) ++at_;
  }
  Result<std::span<const std::byte>> next() override {
    if (at_ > 0 && at_ <= kept_.size()) position_ = std::max(position_, kept_[at_ - 1].end);
    for (; at_ < kept_.size() && kept_[at_].end <= until_; position_ = kept_[at_++].end) {
      const auto certain = recovery::is_certain(kept_[at_].bytes, node_, history_, below_);
      if (certain == recovery::Certain::kNotYet) break;
      if (certain == recovery::Certain::kYes) return std::span<const std::byte>(kept_[at_++].bytes);
    }
    return Errc::kNotFound;
  }
  void put_back() override {
    if (mutation == Mutation::kNotPutBack)
      position_ = kept_[at_ - 1].end;
    else
      --at_;
  }
  uint64_t position() const { return position_; }  // all records up to there are applied

 private:
  const std::vector<LateLog::Kept>& kept_;
  const NodeId node_;
  const recovery::NodeHistory& history_;
  const uint64_t until_, below_;
  uint64_t position_;
  size_t at_ = 0;
};

class PoolDisk::Ring final : public recovery::LogSource {
 public:
  Ring(const recovery::Death& death, uint64_t from) : death_(death), at_(from), applied_(from) {}
  Result<std::span<const std::byte>> next() override {
    applied_ = at_;
    if (at_ == death_.framed.size()) return Errc::kNotFound;
    const auto record = bufmgr::framed_record(std::span(death_.framed).subspan(at_), death_.first_sequence + at_);
    if (!record) return record.error() == Errc::kNotFound ? Errc::kCorrupt : record.error();
    at_ += sizeof(bufmgr::RecordFrame) + record->size();
    return *record;
  }
  void put_back() override { at_ = applied_; }
  uint64_t position() const { return at_; }
  const recovery::Death& death() const { return death_; }

 private:
  const recovery::Death& death_;
  uint64_t at_, applied_;
};

class PoolDisk::Pages final : public recovery::PageImages {
 public:
  explicit Pages(Images& images) : images_(images) {}
  Result<std::byte*> image(coherence::PageId page) override {
    auto& image = images_[page.raw];
    if (!image) image = std::make_unique<Image>();
    return image->bytes;
  }

 private:
  Images& images_;
};

void PoolDisk::add(uint32_t kind, std::vector<std::byte> bytes) {
  if (!journal_.add(kind, bytes)) abort();
  entries_.push_back({kind, std::move(bytes)});
}

void PoolDisk::joined(NodeId node, uint64_t incarnation, uint64_t first_sequence) {
  if (mutation == Mutation::kJoinUnrecorded) return;
  add(kJoinEntry, entry_of({node.value, incarnation, first_sequence, 0}));
}

void PoolDisk::died(NodeId node, uint64_t incarnation, uint64_t first_sequence, std::span<const std::byte> framed) {
  if (mutation == Mutation::kDeathUnrecorded) return;
  add(kDeathEntry, entry_of({node.value, incarnation, first_sequence, first_sequence + framed.size(), 0}, framed));
}

// Those of which the checkpoint has all (recovery::drop_rings).
void PoolDisk::drop_rings() {
  const Progress& done = mutation == Mutation::kRingsDroppedEarly ? making_->progress : checkpoint_;
  recovery::History left;
  for (Entry& entry : entries_) {
    uint64_t head[2];
    memcpy(head, entry.bytes.data(), sizeof head);
    const auto ring = done.rings.find({head[0], head[1]});
    if (entry.kind == kDeathEntry && ring != done.rings.end() && ring->second == entry.bytes.size() - kDeathHead) {
      entry.kind = kDeathWithoutRingEntry;
      entry.bytes.resize(kDeathHead);
      rings_dropped_ = true;
    }
    if (!left.add(entry.kind, entry.bytes)) abort();
  }
  journal_ = std::move(left);
}

PoolDisk::Images PoolDisk::copy_of(const Images& images) {
  Images copy;
  for (const auto& [page, image] : images) copy[page] = std::make_unique<Image>(*image);
  return copy;
}

PoolDisk::Progress PoolDisk::copy_of(const Progress& from) {
  Progress copy;
  memcpy(copy.position, from.position, sizeof copy.position);
  copy.rings = from.rings;
  copy.images = copy_of(from.images);
  return copy;
}

Result<uint32_t> PoolDisk::apply(const std::vector<recovery::LogSource*>& sources, Images* to, Problem* problem) {
  Pages pages(*to);
  if (mutation != Mutation::kLogsApart) return recovery::apply_logs_so_far(sources, pages, problem);
  uint32_t waiting = 0;
  for (recovery::LogSource* source : sources) {
    const auto one = recovery::apply_logs_so_far(std::span(&source, 1), pages, problem);
    if (!one) return one.error();
    waiting += *one;
  }
  return waiting;
}

Result<uint32_t> PoolDisk::merge(const recovery::History& journal, const std::vector<NodeLog>& logs,
                                 const std::vector<uint64_t>& until, bool certain, Progress* progress,
                                 Problem* problem) {
  std::vector<std::unique_ptr<Log>> of_nodes;
  std::vector<std::unique_ptr<Ring>> rings;
  std::vector<recovery::LogSource*> sources;
  for (const recovery::NodeHistory& node : journal.node)
    for (const recovery::Death& death : node.deaths()) {
      if (death.framed.empty()) continue;  // or it was dropped
      rings.push_back(std::make_unique<Ring>(death, progress->rings[{death.node.value, death.incarnation}]));
      sources.push_back(rings.back().get());
    }
  for (size_t n = 0; n < logs.size(); ++n) {
    const uint64_t below = certain && mutation != Mutation::kHoleOverlooked ? logs[n].hole : ~uint64_t{0};
    of_nodes.push_back(std::make_unique<Log>(*logs[n].log, NodeId{uint8_t(n)}, journal.node[n], progress->position[n],
                                             until[n], below));
    sources.push_back(of_nodes.back().get());
  }
  const auto waiting = apply(sources, &progress->images, problem);
  if (!waiting) return waiting.error();
  for (size_t n = 0; n < logs.size(); ++n) progress->position[n] = of_nodes[n]->position();
  for (const auto& ring : rings)
    progress->rings[{ring->death().node.value, ring->death().incarnation}] = ring->position();
  return *waiting;
}

// Somewhere behind what is flushed: the machine may have written more than it was asked to.
std::vector<uint64_t> PoolDisk::read_up_to(const std::vector<NodeLog>& logs, Random& random) const {
  std::vector<uint64_t> until;
  for (size_t n = 0; n < logs.size(); ++n) {
    const uint64_t flushed = std::max(logs[n].log->truly_flushed(), synced_[n]);
    until.push_back(random.one_in(2) ? flushed : random.between(flushed, std::max(flushed, logs[n].log->end())));
  }
  return until;
}

void PoolDisk::lose_process(NodeId node, LateLog& log, Random& random) const {
  const uint64_t kept = std::max({log.truly_flushed(), synced_[node.value], written_[node.value]});
  log.lose_behind(random.between(kept, std::max(kept, log.end())));
}

void PoolDisk::make_checkpoint(const std::vector<NodeLog>& logs, Random& random) {
  ++checkpoints_;
  const auto until = read_up_to(logs, random);
  Problem problem;
  if (!merge(journal_, logs, until, true, &checkpoint_, &problem)) abort();
  for (size_t n = 0; n < logs.size(); ++n) synced_[n] = std::max(synced_[n], until[n]);  // before it is there
}

// What the journal says comes behind the holes, and before the logs (tools/gclctl/checkpoint.cpp).
void PoolDisk::read_logs(const std::vector<NodeLog>& logs, Random& random) {
  making_->progress = copy_of(checkpoint_);
  making_->until = read_up_to(logs, random);
  for (size_t n = 0; n < logs.size(); ++n) written_[n] = std::max(written_[n], making_->until[n]);
  Problem problem;
  if (!merge(making_->journal, logs, making_->until, true, &making_->progress, &problem)) abort();
}

void PoolDisk::replace() {
  Images before = std::move(checkpoint_.images);
  checkpoint_ = copy_of(making_->progress);
  if (mutation == Mutation::kCheckpointNamedFirst) checkpoint_.images = std::move(before);
  ++checkpoints_;
}

void PoolDisk::make(CheckpointStep step, const std::vector<NodeLog>& logs, const std::vector<uint64_t>& holes,
                    Random& random) {
  switch (step) {
    case CheckpointStep::kHolesRead:
      making_->journal = journal_;
      break;
    case CheckpointStep::kLogsRead: {
      std::vector<NodeLog> certain = logs;
      for (size_t n = 0; n < logs.size(); ++n) certain[n].hole = holes[n];
      read_logs(certain, random);
      break;
    }
    case CheckpointStep::kImagesWritten:
      if (mutation == Mutation::kCheckpointNamedFirst) replace();
      if (mutation == Mutation::kRingsDroppedEarly) drop_rings();
      break;
    case CheckpointStep::kLogsSynced:
      for (size_t n = 0; n < logs.size(); ++n) synced_[n] = std::max(synced_[n], making_->until[n]);
      break;
    case CheckpointStep::kReplaced:
      if (mutation == Mutation::kCheckpointNamedFirst) checkpoint_.images = copy_of(making_->progress.images);
      if (mutation != Mutation::kCheckpointNamedFirst) replace();
      break;
    case CheckpointStep::kRingsDropped:
      drop_rings();
      break;
    case CheckpointStep::kCount:
      break;
  }
}

bool PoolDisk::restart(const std::vector<NodeLog>& logs, bool from_checkpoint, Random& random, Images* to,
                       Problem* why) {
  ++restarts_;
  Progress progress;
  if (from_checkpoint || rings_dropped_) progress = copy_of(checkpoint_);
  if (mutation == Mutation::kCheckpointPagesLost) progress.images.clear();
  const auto waiting = merge(journal_, logs, read_up_to(logs, random), false, &progress, why);
  *to = std::move(progress.images);
  return waiting.ok() && *waiting == 0;
}

}  // namespace sim
