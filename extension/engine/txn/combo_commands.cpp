#include "extension/engine/txn/combo_commands.hpp"

#include <algorithm>
#include <new>

#include "coherence/base/verify.hpp"

namespace engine {

using coherence::Errc;
using coherence::Status;

// The run with the line, or else the first one behind it.
uint32_t ComboCommands::run_for(const Runs& runs, uint16_t line) noexcept {
  const Run* found =
      std::lower_bound(runs.begin(), runs.end(), line, [](const Run& run, uint16_t value) { return run.last < value; });
  return uint32_t(found - runs.begin());
}

// Whether a neighbour of the line, which is in no run, could take it in.  `next`: the first run behind it.
bool ComboCommands::extend(Runs& runs, uint32_t next, uint16_t line, Commands commands) noexcept {
  if (next > 0 && runs[next - 1].commands == commands)
    runs[next - 1].last = line;
  else if (next < runs.size() && runs[next].commands == commands)
    runs[next].first = line;
  else
    return false;
  return true;
}

// Takes the line out of its run.  Returns the first run behind it.  REQUIRES: room for one more.
uint32_t ComboCommands::split(Runs& runs, uint32_t at, uint16_t line) noexcept {
  const Run before = runs[at];
  if (before.first == before.last) {
    runs.erase(at);
    return at;
  }
  if (line == before.first) {
    ++runs[at].first;
    return at;
  }
  runs[at].last = uint16_t(line - 1);
  if (line < before.last) runs.insert(at + 1, {before.commands, uint16_t(line + 1), before.last});
  return at + 1;
}

Status ComboCommands::note(RowPlace at, Commands commands) noexcept {
  if (pages_.empty() && reserve_ == nullptr) reserve_.reset(new (std::nothrow) std::byte[kReserve]);
  const Status noted = put(at, commands);
  if (!noted) reserve_.reset();
  return noted;
}

Status ComboCommands::put(RowPlace at, Commands commands) noexcept {
  Runs* runs = pages_.make(at.page.raw);
  if (runs == nullptr) return Errc::kNoMemory;
  uint32_t next = run_for(*runs, at.line);
  const bool noted = next < runs->size() && (*runs)[next].first <= at.line;
  if (noted && (*runs)[next].commands == commands) return {};
  if (!noted && extend(*runs, next, at.line, commands)) return {};
  // For the run that is split and the line's own: before anything changes.
  if (!runs->make_room(2)) return Errc::kNoMemory;
  if (noted) next = split(*runs, next, at.line);
  if (!extend(*runs, next, at.line, commands)) runs->insert(next, {commands, at.line, at.line});
  return {};
}

Commands ComboCommands::at(RowPlace place) const noexcept {
  const Runs* runs = pages_.find(place.page.raw);
  VERIFY(runs != nullptr);
  const uint32_t at = run_for(*runs, place.line);
  VERIFY(at < runs->size() && (*runs)[at].first <= place.line);
  return (*runs)[at].commands;
}

size_t ComboCommands::runs() const noexcept {
  size_t count = 0;
  pages_.for_each([&](const Runs& runs) { count += runs.size(); });
  return count;
}

}  // namespace engine
