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

constexpr uint32_t kJoinEntry = 16, kDeathEntry = 17;  // as recovery/restart_journal.cpp writes them

void add_entry(recovery::History& journal, uint32_t kind, const std::vector<uint64_t>& words,
               std::span<const std::byte> more = {}) {
  const auto head = std::as_bytes(std::span(words));
  std::vector<std::byte> all(head.begin(), head.end());
  all.insert(all.end(), more.begin(), more.end());
  if (!journal.add(kind, all)) abort();
}

}  // namespace

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
  void put_back() override { --at_; }
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

void PoolDisk::joined(NodeId node, uint64_t incarnation, uint64_t first_sequence) {
  add_entry(journal_, kJoinEntry, {node.value, incarnation, first_sequence, 0});
}

void PoolDisk::died(NodeId node, uint64_t incarnation, uint64_t first_sequence, std::span<const std::byte> framed) {
  if (mutation == Mutation::kDeathUnrecorded) return;
  add_entry(journal_, kDeathEntry, {node.value, incarnation, first_sequence, first_sequence + framed.size(), 0},
            framed);
}

std::vector<const recovery::Death*> PoolDisk::deaths() const {
  std::vector<const recovery::Death*> all;
  for (const recovery::NodeHistory& node : journal_.node)
    for (const recovery::Death& death : node.deaths()) all.push_back(&death);
  return all;
}

PoolDisk::Images PoolDisk::copy_of(const Images& images) {
  Images copy;
  for (const auto& [page, image] : images) copy[page] = std::make_unique<Image>(*image);
  return copy;
}

Result<uint32_t> PoolDisk::merge(const std::vector<NodeLog>& logs, const std::vector<uint64_t>& until, bool certain,
                                 Progress* progress, Problem* problem) {
  std::vector<std::unique_ptr<Log>> of_nodes;
  std::vector<std::unique_ptr<Ring>> rings;
  std::vector<recovery::LogSource*> sources;
  for (const recovery::Death* death : deaths()) {
    rings.push_back(std::make_unique<Ring>(*death, progress->rings[{death->node.value, death->incarnation}]));
    sources.push_back(rings.back().get());
  }
  for (size_t n = 0; n < logs.size(); ++n) {
    const uint64_t below = certain && mutation != Mutation::kHoleOverlooked ? logs[n].hole : ~uint64_t{0};
    of_nodes.push_back(std::make_unique<Log>(*logs[n].log, NodeId{uint8_t(n)}, journal_.node[n], progress->position[n],
                                             until[n], below));
    sources.push_back(of_nodes.back().get());
  }
  Pages pages(progress->images);
  const auto waiting = recovery::apply_logs_so_far(sources, pages, problem);
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
  const uint64_t flushed = std::max(log.truly_flushed(), synced_[node.value]);
  log.lose_behind(random.between(flushed, std::max(flushed, log.end())));
}

void PoolDisk::make_checkpoint(const std::vector<NodeLog>& logs, Random& random) {
  ++checkpoints_;
  const auto until = read_up_to(logs, random);
  Problem problem;
  if (!merge(logs, until, true, &checkpoint_, &problem)) abort();
  for (size_t n = 0; n < logs.size(); ++n) synced_[n] = std::max(synced_[n], until[n]);  // before it is there
}

bool PoolDisk::restart(const std::vector<NodeLog>& logs, bool from_checkpoint, Random& random, Images* to,
                       Problem* why) {
  ++restarts_;
  Progress progress;
  if (from_checkpoint) {
    memcpy(progress.position, checkpoint_.position, sizeof progress.position);
    progress.rings = checkpoint_.rings;
    progress.images = copy_of(checkpoint_.images);
  }
  const auto waiting = merge(logs, read_up_to(logs, random), false, &progress, why);
  *to = std::move(progress.images);
  return waiting.ok() && *waiting == 0;
}

}  // namespace sim
