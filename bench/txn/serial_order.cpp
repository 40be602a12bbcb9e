// The judge: the writer of a version comes before its readers, and before the writer of the next one; its readers come
// before the writer of the next one.  If these have no circle, they are the orders that explain the history.
#include <map>

#include "bench/txn/cell.hpp"

namespace txn {

namespace {

using Version = std::pair<uint64_t, uint64_t>;  // of a row

}  // namespace

bool is_serializable(const std::vector<Seen>& history, std::string* why) {
  std::map<Version, size_t> written_by;
  for (size_t t = 0; t < history.size(); t++)
    for (const auto& [row, version] : history[t].writes)
      if (!written_by.emplace(Version{row.number(), version}, t).second) {
        *why = "two transactions have written version " + std::to_string(version) + " of row " +
               std::to_string(row.number()) + ": one of them is lost";
        return false;
      }
  std::vector<std::vector<size_t>> after(history.size());
  std::vector<size_t> before(history.size());
  const auto edge = [&](size_t from, size_t to) {
    if (from == to) return;
    after[from].push_back(to);
    before[to]++;
  };
  const auto writer = [&](const Row& row, uint64_t version) {
    const auto found = written_by.find({row.number(), version});
    return found != written_by.end() ? found->second : history.size();
  };
  for (size_t t = 0; t < history.size(); t++) {
    for (const auto& [row, version] : history[t].reads) {
      if (const size_t by = writer(row, version); by < history.size()) edge(by, t);
      if (const size_t next = writer(row, version + 1); next < history.size()) edge(t, next);
      if (version > 0 && writer(row, version) == history.size()) {
        *why = "version " + std::to_string(version) + " of row " + std::to_string(row.number()) +
               " was read, and nobody who was committed has written it";
        return false;
      }
    }
    for (const auto& [row, version] : history[t].writes)
      if (const size_t by = writer(row, version - 1); by < history.size()) edge(by, t);
  }
  std::vector<size_t> free;
  for (size_t t = 0; t < history.size(); t++)
    if (before[t] == 0) free.push_back(t);
  size_t ordered = 0;
  for (; !free.empty(); ordered++) {
    const size_t t = free.back();
    free.pop_back();
    for (const size_t next : after[t])
      if (--before[next] == 0) free.push_back(next);
  }
  if (ordered == history.size()) return true;
  *why = std::to_string(history.size() - ordered) + " transactions have no order";
  return false;
}

}  // namespace txn
