#include "bench/txn/versions.hpp"

#include <algorithm>

namespace txn {

Id Words::begin(int node, uint64_t* snapshot) {
  network_.batch(node, place(0), {{true, 16, 8}, {false, 0, 8}}, [&] { *snapshot = clock_; });
  status_.push_back({});
  return status_.size() - 1;
}

Status Words::load(int node, Id id) {
  Status found;
  network_.batch(node, place(id), {{false, 0, 8}}, [&] { found = status_[id]; });
  return found;
}

void Words::set(int node, Id id, Status status) {
  network_.batch(node, place(id), {{true, 16, 8}}, [&] { status_[id] = status; });
}

uint64_t Words::set_and_count(int node, Id id, Status status) {
  uint64_t cts = 0;
  network_.batch(node, place(0), {{true, 16, 8}, {true, 8, 8}}, [&] {
    status_[id] = status;
    cts = ++clock_;
  });
  return cts;
}

Read look(Words& words, const Self& self, const Versions& line, uint64_t* number) {
  for (const auto& version : line.at) {
    Status status = words.known(version.by);
    if (version.by != self.id && status.running()) do {
        status = words.load(self.node, version.by);
      } while (status.state == Status::kPrepared ||
               (status.state == Status::kAnnounced && status.cts <= self.snapshot));
    const bool seen = status.state == Status::kCommitted && status.cts <= self.snapshot;
    if (!seen && version.by != self.id) continue;
    *number = version.number;
    return Read::kFound;
  }
  return Read::kTooOld;
}

bool is_newer(const Words& words, const Self& self, const Versions& line) {
  return std::ranges::any_of(line.at, [&](const auto& version) {
    const Status status = words.known(version.by);
    return status.state == Status::kCommitted && status.cts > self.snapshot;
  });
}

Put put(const Words& words, const Self& self, Versions* line, uint64_t* number) {
  const auto aborted = [&](const auto& version) { return words.known(version.by).state == Status::kAborted; };
  Versions left{};
  const auto end = std::ranges::copy_if(line->at, left.at, std::not_fn(aborted)).out;
  // The last one that is left stands for those that were before it.
  for (auto at = end; at != std::end(left.at); ++at) *at = *(at - 1);
  const Status last = words.known(left.at[0].by);
  if (last.running()) return Put::kRuns;
  if (last.cts > self.snapshot) return Put::kNewer;
  *number = left.at[0].number + 1;
  line->at[0] = {self.id, *number};
  std::copy_n(left.at, 3, line->at + 1);
  return Put::kDone;
}

}  // namespace txn
