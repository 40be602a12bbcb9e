#include "extension/pg/ddl/data_life.hpp"

#include "extension/pg/ddl/ddl_node_state.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"

namespace gcl {
namespace {

constexpr const char* kFile = "life";
constexpr uint64_t kLifeMagic = 0x67636c6c69666531;  // "gcllife1"
constexpr uint64_t kEnded = 1;                       // bit of a number: that life has ended

struct LifeFile {
  uint64_t magic;
  uint64_t node;
  uint64_t before, now;  // the pool's is either: it is written behind the file
};

uint64_t new_life() {
  uint64_t number = 0;
  while (number == 0) {
    if (!pg_strong_random(&number, sizeof number)) elog(ERROR, "gcl: no random numbers");
    number &= ~kEnded;
  }
  return number;
}

void write_life(uint64_t before, uint64_t now) {
  const LifeFile next{kLifeMagic, ddl_node(), before, now};
  replace_ddl_file(kFile, &next, sizeof next);
  ddl_channel().set_life(now);
}

// Null: it is.
const char* why_another_directory(const LifeFile& file, bool exists, uint64_t pools) {
  if (exists && file.magic != kLifeMagic) return "The file gcl_ddl/life in it is damaged.";
  if (exists && file.node != ddl_node()) return psprintf("It is a copy of that of primary %d.", int(file.node));
  if (!exists && pools == 0) return nullptr;  // the first start of both
  if (!exists) return "It has never been in this pool, and another one has been, under the same gcl.node_id.";
  if (pools == file.now || pools == file.before) return nullptr;
  if (pools == 0) return "It has been in another pool.";
  return "It is older than this primary's last stop, or the pool is.";
}

}  // namespace

bool begin_life() {
  LifeFile file{};
  const bool exists = read_ddl_file(kFile, &file, sizeof file);
  const uint64_t pools = ddl_channel().life();
  if (const char* why = why_another_directory(file, exists, pools)) {
    strlcpy(ddl_node_state().refusal, why, sizeof ddl_node_state().refusal);
    return false;
  }
  const uint64_t life = new_life();
  write_life(pools, life);
  ddl_node_state().life = life;
  return true;
}

void end_life() {
  const uint64_t life = ddl_node_state().life;
  if (life == 0) return;
  ddl_node_state().life = 0;
  write_life(life, life | kEnded);
}

}  // namespace gcl
