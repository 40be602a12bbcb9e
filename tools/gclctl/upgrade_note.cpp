#include "tools/gclctl/upgrade_note.hpp"

#include <fstream>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/text_file.hpp"

namespace gclctl {
namespace {

fs::path note(const Cluster& c, int k) { return c.data(k).parent_path() / "upgrade"; }

}  // namespace

void note_upgrade(const Cluster& c, int k, const std::string& software) { write_text(note(c, k), software + "\n"); }

// One that stays does no harm but that `status` shows it.
void drop_upgrade_note(const Cluster& c, int k) {
  std::error_code ignored;
  fs::remove(note(c, k), ignored);
}

bool has_upgrade_note(const Cluster& c, int k) { return fs::exists(note(c, k)); }

std::string upgrade_in_words(const Cluster& c, int k) {
  std::ifstream in(note(c, k));
  std::string software;
  if (!std::getline(in, software)) return "";
  if (!lock_upgrade(c.dir, coherence::PoolLock::kTry).held()) return "gclctl upgrade gives it " + software;
  return fmt::format("an upgrade to {} was INTERRUPTED here; it goes on with: gclctl upgrade {}", software,
                     c.dir.string());
}

}  // namespace gclctl
