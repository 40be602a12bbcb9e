#include "extension/engine/txn/own_commands.hpp"

#include "coherence/base/verify.hpp"

namespace engine {

void OwnCommands::note(RowPlace at, Commands commands) {
  std::vector<Note>& notes = pages_[at.page.raw];
  Note* to = nullptr;
  for (Note& note : notes) {
    note.lines.reset(at.line);
    if (note.commands == commands)
      to = &note;
    else if (to == nullptr && note.lines.none())
      to = &note;
  }
  if (to == nullptr) to = &notes.emplace_back();
  to->commands = commands;
  to->lines.set(at.line);
}

Commands OwnCommands::at(RowPlace place) const {
  auto notes = pages_.find(place.page.raw);
  VERIFY(notes != pages_.end());
  for (const Note& note : notes->second)
    if (note.lines.test(place.line)) return note.commands;
  VERIFY(false);
  return {};
}

void OwnCommands::forget() noexcept {
  if (!pages_.empty()) decltype(pages_)().swap(pages_);  // with its buckets, which the next ones would clear, too
}

size_t OwnCommands::notes() const {
  size_t count = 0;
  for (const auto& [page, notes] : pages_) count += notes.size();
  return count;
}

}  // namespace engine
