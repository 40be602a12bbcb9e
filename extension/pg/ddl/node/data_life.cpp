#include "extension/pg/ddl/node/data_life.hpp"

#include "extension/pg/ddl/base/ddl_file.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"

namespace gcl {
namespace {

constexpr const char* kFile = "life";
constexpr const char* kCopyFile = "copy";
constexpr const char* kRestoredFile = "restored";
constexpr uint64_t kLifeMagic = 0x67636c6c69666531;  // "gcllife1", whose last character is the version
constexpr uint64_t kEnded = engine::DdlLife::kEnded, kForgotten = engine::DdlLife::kForgotten;

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
  ddl_note_life(ddl_node_id(), now);
  ddl_channel().set_life(ddl_node_id(), now);
}

// Made by prepare_copy(), for this primary, in this pool.
bool is_prepared_copy(uint64_t pools) {
  LifeFile copy{};
  return read_ddl_file(kCopyFile, &copy, sizeof copy) && copy.magic == kLifeMagic && copy.node == ddl_node() &&
         copy.now == pools;
}

bool is_of_later_version(const LifeFile& file) {
  constexpr int kVersionBits = 8;
  return file.magic >> kVersionBits == kLifeMagic >> kVersionBits && file.magic > kLifeMagic;
}

// Null: it is.
const char* why_another_directory(const LifeFile& file, bool exists, uint64_t pools) {
  if (exists && is_of_later_version(file))
    return psprintf("Its file gcl_ddl/life has version \"%c\", and version \"%c\" is read here.", char(file.magic),
                    char(kLifeMagic));
  if (exists && file.magic != kLifeMagic) return "The file gcl_ddl/life in it is damaged.";
  if (exists && file.node != ddl_node())
    return is_prepared_copy(pools) ? nullptr : psprintf("It is a copy of that of primary %d.", int(file.node));
  if (!exists && pools == 0) return nullptr;  // the first start of both
  if (!exists) return "It has never been in this pool, and another one has been, under the same gcl.node_id.";
  if (pools == file.now || pools == file.before) return nullptr;
  if (pools == 0) return "It has been in another pool.";
  return "It is older than this primary's last stop, or the pool is.";
}

}  // namespace

DataDirectory data_directory() {
  LifeFile file{};
  const bool exists = read_ddl_file(kFile, &file, sizeof file);
  const uint64_t pools = ddl_channel().life(ddl_node_id());
  ddl_require_unfenced();
  if (why_another_directory(file, exists, pools) != nullptr) return DataDirectory::kAnother;
  return exists && file.node != ddl_node() ? DataDirectory::kCopy : DataDirectory::kOwn;
}

bool begin_life() {
  LifeFile file{};
  const bool exists = read_ddl_file(kFile, &file, sizeof file);
  const uint64_t pools = ddl_channel().life(ddl_node_id());
  ddl_require_unfenced();
  if (const char* why = why_another_directory(file, exists, pools)) {
    strlcpy(ddl_node_state().refusal, why, sizeof ddl_node_state().refusal);
    ddl_node_state().refused = pools == kForgotten         ? Refused::kForgotten
                               : is_of_later_version(file) ? Refused::kLaterVersion
                                                           : Refused::kAnotherDirectory;
    return false;
  }
  if (!exists) forget_all_positions();  // the first start of both
  const uint64_t life = new_life();
  write_life(pools, life);
  forget_ddl_file(kCopyFile);  // used, or left by a crash
  forget_ddl_file(kRestoredFile);
  ddl_node_state().life = life;
  return true;
}

void end_life() {
  const uint64_t life = ddl_node_state().life;
  if (life == 0) return;
  ddl_node_state().life = 0;
  write_life(life, life | kEnded);
}

void end_life_of_old_copy() {
  LifeFile file{};
  if (!read_ddl_file(kFile, &file, sizeof file)) return;
  file.before = file.now = new_life();
  replace_ddl_file(kFile, &file, sizeof file);
}

uint64_t write_life_of_copy(uint8_t node) {
  const uint64_t life = new_life();
  const LifeFile copy{kLifeMagic, node, life, life};
  replace_ddl_file(kCopyFile, &copy, sizeof copy);
  return life;
}

void end_life_of_copy(uint8_t node, uint64_t life) noexcept {
  if (life != 0) ddl_channel().set_life(coherence::NodeId{node}, life);
  forget_ddl_file(kCopyFile);
}

void end_life_of(uint8_t node) {
  ddl_note_life(coherence::NodeId{node}, kForgotten);
  ddl_channel().set_life(coherence::NodeId{node}, kForgotten);
}

}  // namespace gcl
