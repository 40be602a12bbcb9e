#include "history.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sim {
namespace {

constexpr int kNone = -1;

// Of one value of one page.
struct Value {
  int writer = kNone;    // operation
  int replaced = kNone;  // by this write
  std::vector<int> readers;
};

std::string say(const char* what, int page, uint64_t value) {
  return std::string(what) + ": page " + std::to_string(page) + ", value " + std::to_string(value);
}

// Whether the graph can be laid out in a line.
bool has_cycle(const std::vector<std::vector<int>>& after) {
  std::vector<int> before(after.size(), 0), ready;
  for (const auto& successors : after)
    for (int s : successors) before[size_t(s)]++;
  for (size_t i = 0; i < after.size(); i++)
    if (before[i] == 0) ready.push_back(int(i));
  size_t laid_out = 0;
  while (!ready.empty()) {
    const int i = ready.back();
    ready.pop_back();
    laid_out++;
    for (int s : after[size_t(i)])
      if (--before[size_t(s)] == 0) ready.push_back(s);
  }
  return laid_out != after.size();
}

}  // namespace

void History::forget_write(int fiber, int page, uint64_t value) {
  auto& of = of_[size_t(fiber)];
  std::erase_if(of, [&](const Operation& o) { return o.write && o.page == page && o.value == value; });
}

void History::forget_value(int page, uint64_t value) {
  for (auto& of : of_) std::erase_if(of, [&](const Operation& o) { return o.page == page && o.value == value; });
}

uint64_t History::size() const {
  uint64_t n = 0;
  for (const auto& operations : of_) n += operations.size();
  return n;
}

std::string History::explain() const {
  std::map<std::pair<int, uint64_t>, Value> values;
  std::vector<std::vector<int>> after(size());
  int number = 0;
  for (const auto& operations : of_) {
    for (size_t i = 0; i < operations.size(); i++, number++) {
      const Operation& o = operations[i];
      if (i + 1 < operations.size()) after[size_t(number)].push_back(number + 1);
      Value& value = values[{o.page, o.value}];
      if (!o.write) {
        value.readers.push_back(number);
        continue;
      }
      value.writer = number;
      if (i == 0 || operations[i - 1].page != o.page) return say("written unread", o.page, o.value);
      Value& replaced = values[{o.page, operations[i - 1].value}];
      if (replaced.replaced != kNone) return say("two writes replace one value", o.page, operations[i - 1].value);
      replaced.replaced = number;
    }
  }
  for (const auto& [key, value] : values) {
    if (value.writer == kNone && key.second != 0) return say("nobody wrote what was read", key.first, key.second);
    if (value.writer != kNone && value.replaced != kNone) after[size_t(value.writer)].push_back(value.replaced);
    for (int reader : value.readers) {
      if (value.writer != kNone && value.writer != reader) after[size_t(value.writer)].push_back(reader);
      if (value.replaced != kNone && value.replaced != reader) after[size_t(reader)].push_back(value.replaced);
    }
  }
  return has_cycle(after) ? "no order of all operations explains what was read" : "";
}

}  // namespace sim
