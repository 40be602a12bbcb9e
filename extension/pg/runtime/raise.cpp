#include "extension/pg/runtime/raise.hpp"

#include "extension/engine/heap/relation_map.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/runtime/settings.hpp"

namespace gcl {

using coherence::Errc;

namespace {

[[noreturn]] void raise_at_limit(const char* name) {
  constexpr uint64_t kPages = uint64_t{engine::RelationPage::kMapsMax} * engine::kBlocksPerMap;
  ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
          errmsg("relation \"%s\" is as large as a gcl table can be", name),
          errdetail("It has at most %llu pages of %d kB, which the primaries take %u at a time.",
                    static_cast<unsigned long long>(kPages), BLCKSZ / 1024, engine::kBlocksPerMap),
          errhint("Partition the table, or delete rows and VACUUM it."));
  pg_unreachable();
}

}  // namespace

void raise_unless_interrupted(Errc outcome, Relation rel) {
  if (outcome == Errc::kHeld) {
    require_may_wait(rel);
    const coherence::Status waited = wait_for_holder();
    outcome = waited ? Errc::kInterrupted : waited.error();
  }
  if ((outcome == Errc::kNoHolds || outcome == Errc::kConflict) && give_up_holds(outcome)) outcome = Errc::kGivenUp;
  if (outcome == Errc::kGivenUp) {
    meet_given_up();
    outcome = Errc::kInterrupted;
  }
  if (outcome != Errc::kInterrupted) raise(outcome, rel);
  raise_carried_error();
  CHECK_FOR_INTERRUPTS();
}

void end_as_crashed(const char* why) {
  ereport(LOG, errmsg("gcl: %s: %s", why, fence_reason()));
  _exit(2);
}

void raise(Errc outcome, Relation rel) {
  const char* name = rel != nullptr ? RelationGetRelationName(rel) : "(none)";
  switch (outcome) {
    case Errc::kInterrupted:
      raise_carried_error();
      CHECK_FOR_INTERRUPTS();
      ereport(ERROR, errcode(ERRCODE_QUERY_CANCELED), errmsg("canceling statement due to an interrupt"));
      break;
    case Errc::kFenced:
      if (node_pool() != nullptr && node_pool()->coherence_node().is_cut_off())
        ereport(ERROR, errcode(ERRCODE_CRASH_SHUTDOWN), errmsg("this primary was cut off from the gcl pool"),
                errdetail("%s", fence_reason()),
                errhint("It restarts, and joins the pool again as soon as it reaches it. The other primaries go on."));
      ereport(
          ERROR, errcode(ERRCODE_CRASH_SHUTDOWN), errmsg("the gcl pool is fenced"), errdetail("%s", fence_reason()),
          errhint("A primary ended without leaving the pool in order, or lost it. Stop all primaries of the cluster."));
      break;
    case Errc::kTimeout:
      ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("timeout while waiting for the gcl pool"));
      break;
    case Errc::kNoSpace:
      ereport(
          ERROR, errcode(ERRCODE_DISK_FULL), errmsg("the gcl pool has no room for relation \"%s\"", name),
          errdetail("None of the pool's %llu pages is free for it.",
                    static_cast<unsigned long long>(node_pool()->pages())),
          errhint(
              "Delete rows and VACUUM, or TRUNCATE or DROP gcl tables; or make the pool larger: gclctl add-memory."));
      break;
    case Errc::kAtLimit:
      raise_at_limit(name);
    case Errc::kNoIds:
      ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
              errmsg("this primary of the gcl pool has no transaction ids left for now"),
              errdetail(
                  "Too many transactions and savepoints of this primary have been open for longer than the status log "
                  "takes to go round."),
              errhint("End the transactions that have been open for longest; pg_stat_activity.xact_start names them."));
      break;
    case Errc::kNoMemory:
      ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
              errdetail(
                  "This session has none for what its transaction keeps of its changes and locks, or for reaching the "
                  "other primaries (relation \"%s\").",
                  name),
              errhint("COMMIT after fewer changes, or let the server's processes have more memory and open files."));
      break;
    case Errc::kConflict:
      ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
              errmsg("could not serialize access due to concurrent changes"),
              errdetail("What this transaction reads of relation \"%s\" was changed since its snapshot.", name),
              errhint("The transaction might succeed if retried."));
      break;
    case Errc::kUpgrade:
      ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
              errmsg("could not serialize access due to read/write dependencies among transactions"),
              errdetail("Another transaction waits to change a page of relation \"%s\" that both have read.", name),
              errhint("The transaction might succeed if retried."));
      break;
    case Errc::kNoHolds:
      ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
              errmsg("SERIALIZABLE transactions hold too many pages of gcl tables"),
              errdetail("One may hold %d of them, all of this primary half of what gcl.cache_size has room for.",
                        settings.max_page_holds),
              errhint("LOCK TABLE \"%s\" IN SHARE MODE before it is read, or IN ACCESS EXCLUSIVE MODE before it is "
                      "written; or raise gcl.max_page_holds; or make the transaction READ ONLY.",
                      name));
      break;
    case Errc::kTooLarge:
      ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("row or key is too big for \"%s\"", name),
              errdetail("It must fit one page of %d bytes after long values were compressed and moved out of line.",
                        BLCKSZ));
      break;
    case Errc::kIncompatible:
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("gcl tables do not support this operation yet (relation \"%s\")", name));
      break;
    case Errc::kCorrupt:
    case Errc::kNotFound:
      ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
              errmsg("relation \"%s\" is damaged in the gcl pool (%s)", name, coherence::errc_name(outcome)));
      break;
    default:
      ereport(
          ERROR, errcode(ERRCODE_INTERNAL_ERROR),
          errmsg("unexpected outcome of a gcl operation on relation \"%s\": %s", name, coherence::errc_name(outcome)));
  }
  pg_unreachable();
}

}  // namespace gcl
