#include "traces.hpp"

#include <cmath>
#include <unordered_map>

#include "bank.hpp"

namespace gcl_test {
namespace {

constexpr int kBranches = 4, kAccounts = 12000;  // per branch
constexpr uint32_t kMadeUpPages = 1000;
constexpr size_t kMovesAfter = 10000;  // accesses
constexpr int kMadeUpLooks = 100000;

NamedTrace finished(const char* name, Trace&& pages, uint64_t accesses = 0) {
  NamedTrace made{.name = name, .pages = std::move(pages), .distinct = 0, .accesses = accesses};
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (uint64_t& page : made.pages) page = numbers.try_emplace(page, uint32_t(numbers.size())).first->second;
  made.distinct = uint32_t(numbers.size());
  return made;
}

template <class Load>
NamedTrace of_bank(const char* name, const Load& load) {
  Bank bank(kBranches, kAccounts);
  Trace pages;
  bank.record(&pages);
  load(bank);
  return finished(name, std::move(pages), bank.page_accesses());
}

// Numbers below kMadeUpPages, the lower the likelier; which page is how likely is shuffled.
class Zipf {
 public:
  Zipf() {
    double sum = 0;
    for (uint32_t i = 0; i < kMadeUpPages; ++i) below_.push_back(sum += 1 / std::pow(i + 1, 0.99));
  }
  uint64_t next() {
    const double at = double(random_() >> 11) / double(uint64_t{1} << 53) * below_.back();
    const auto rank = uint64_t(std::upper_bound(below_.begin(), below_.end(), at) - below_.begin());
    return rank * 7919 % kMadeUpPages;
  }

 private:
  std::vector<double> below_;
  std::mt19937_64 random_{99};
};

}  // namespace

NamedTrace tpcb_like() {
  return of_bank("tpcb-like", [](Bank& bank) {
    for (int i = 0; i < 5000; ++i) bank.transfer();
  });
}

NamedTrace select_only() {
  return of_bank("select-only", [](Bank& bank) {
    for (int i = 0; i < 25000; ++i) bank.look_up();
  });
}

NamedTrace index_build() {
  return of_bank("index build", [](Bank& bank) {
    bank.build_index();
    bank.add_to_index(20000);
  });
}

NamedTrace look_ups_and_a_scan() {
  return of_bank("look-ups and a scan", [](Bank& bank) {
    for (int i = 0; i < 20000; ++i) {
      bank.look_up();
      bank.scan_a_page();
    }
  });
}

NamedTrace zipf() {
  Zipf zipf;
  Trace pages(kMadeUpLooks);
  for (uint64_t& page : pages) page = zipf.next();
  return finished("zipf 0.99", std::move(pages));
}

NamedTrace zipf_that_moves() {
  Zipf zipf;
  Trace pages(kMadeUpLooks);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = (zipf.next() + i / kMovesAfter * 300) % kMadeUpPages;
  return finished("zipf 0.99 that moves", std::move(pages));
}

NamedTrace zipf_and_loop() {
  Zipf zipf;
  Trace pages(kMadeUpLooks);
  uint64_t step = 0;
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = i % 5 == 0 ? kMadeUpPages + step++ % kMadeUpPages : zipf.next();
  return finished("zipf 0.99 and a loop", std::move(pages));
}

NamedTrace loop() {
  Trace pages(kMadeUpLooks);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = i % kMadeUpPages;
  return finished("loop", std::move(pages));
}

}  // namespace gcl_test
