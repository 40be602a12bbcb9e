#include "tools/gclctl/control_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "coherence/region/memory_file.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

// The head of ControlFileData (catalog/pg_control.h).
struct ControlHead {
  uint64_t system;
  uint32_t version, catalog;
  uint32_t state, padding;
  int64_t time;
  uint64_t checkpoint;
};
static_assert(sizeof(ControlHead) == 40);
constexpr uint32_t kControlVersion = 1300;

}  // namespace

uint64_t last_checkpoint_of(const std::filesystem::path& data) {
  const std::filesystem::path path = data / "global" / "pg_control";
  const coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open() && errno == ENOENT) return 0;
  ControlHead head;
  if (!file.open() || !coherence::read_all(file.fd(), reinterpret_cast<std::byte*>(&head), sizeof head, 0))
    fail("cannot read {}: {}", path.string(), strerror(errno));
  if (head.version != kControlVersion) fail("{} is not of PostgreSQL 15", path.string());
  return head.checkpoint;
}

}  // namespace gclctl
