#include "bench/paper/workload.hpp"

#include <algorithm>
#include <cmath>

namespace paper {

Zipf::Zipf(uint64_t pages, double theta) : up_to_(pages) {
  double sum = 0;
  for (uint64_t rank = 0; rank < pages; rank++) up_to_[rank] = sum += 1 / std::pow(double(rank + 1), theta);
  for (double& p : up_to_) p /= sum;
}

// The ranks go round the memory nodes as they come: neighbours in rank lie on different ones.
uint64_t Zipf::draw(sim::Random& random) const {
  const double at = double(random.next() >> 11) * 0x1p-53;
  const auto found = std::lower_bound(up_to_.begin(), up_to_.end(), at);
  return std::min(uint64_t(found - up_to_.begin()), uint64_t(up_to_.size() - 1));
}

Workload::Workload(const WorkloadSpec& spec, const Zipf* zipf, int node, int thread)
    : spec_(spec),
      zipf_(zipf),
      node_(uint64_t(node)),
      random_(sim::Random::mix(spec.seed * 1'000'003 + uint64_t(node) * 1'009 + uint64_t(thread))) {}

uint64_t Workload::page() {
  if (zipf_) return zipf_->draw(random_);
  const uint64_t shared = spec_.pages() * uint64_t(spec_.sharing) / 100;
  const uint64_t own = (spec_.pages() - shared) / uint64_t(spec_.nodes);
  if (random_.below(100) < uint64_t(spec_.sharing)) return random_.below(shared);
  return shared + node_ * own + random_.below(own);
}

Access Workload::next() {
  if (!any_ || random_.below(100) >= uint64_t(spec_.repeat)) {
    last_.page = page();
    last_.line = uint32_t(random_.below(spec_.gcl / 64));
  }
  any_ = true;
  last_.write = spec_.single_writer ? node_ == 0 : random_.below(100) >= uint64_t(spec_.reads);
  return last_;
}

}  // namespace paper
