// gclctl backup: a copy of a cluster while all its primaries work, as it was at one moment
// (gclctl.backup-is-power-loss).
#include <chrono>
#include <iterator>
#include <memory>
#include <vector>

#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/region/since_save.hpp"
#include "recovery/checkpoint.hpp"
#include "tools/gclctl/backup_manifest.hpp"
#include "tools/gclctl/backup_wal.hpp"
#include "tools/gclctl/checkpoint_lock.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool_copy_files.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/text_file.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr auto kLookMax = std::chrono::seconds(4);

class Backup {
 public:
  Backup(const Cluster& c, fs::path to)
      : c_(c), to_(std::move(to)), description_(read_text(c.dir / Cluster::kFileName)), lock_(c.saved_pool()) {}

  void run() {
    AllPrimaries primaries(c_);
    require_no_tablespaces(primaries);
    const coherence::PoolOutline copy = outline();
    manifest_.server = server_version(c_.bindir(c_.chosen(0).front()));
    manifest_.pool_id = copy.pool_id;
    manifest_.saves = copy.saves;
    for (const int k : c_.chosen(0)) copy_data(k);
    std::vector<KeptWal> wal;
    for (const int k : c_.chosen(0)) wal.emplace_back(c_, k, primaries[k]);
    skip_what_checkpoint_has(&wal);
    if (archives(primaries)) mark_backed_up();
    open_copy();  // once more than is needed is no harm: what is open stays as it is
    const Cut cut = primaries.take_cut();
    manifest_.cut = cut.position;
    manifest_.time = text_of_time(cut.time);
    for (const int k : c_.chosen(0)) require_same_life(k);
    copy_pool(cut);
    for (const KeptWal& one : wal) one.copy(cut.position.at(one.primary()), to_, &manifest_.files);
    copy_removed_logs();
    require_unchanged();
    add(BackupManifest::kClusterFile, copy_summed(c_.dir / Cluster::kFileName, to_ / BackupManifest::kClusterFile));
    sync_file_system(to_);
    manifest_.write(to_);
    fmt::print("backup of {} primaries in {}, as of {}; commits were held for {:.0f} ms\n", manifest_.cut.size(),
               to_.string(), manifest_.time, cut.held_ms);
  }

 private:
  void add(const std::string& path, const FileSum& sum) { manifest_.files[path] = sum; }

  coherence::PoolOutline outline() const {
    coherence::Problem problem;
    const auto found = coherence::outline_pool(c_.saved_pool().c_str(), &problem);
    if (!found) fail("{}", problem.text);
    return *found;
  }

  // pg_basebackup would write into them.
  void require_no_tablespaces(AllPrimaries& primaries) const {
    for (const int k : c_.chosen(0)) {
      const auto rows = primaries[k].require(
          "SELECT spcname FROM pg_catalog.pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')", kLookMax);
      if (!rows.empty())
        fail("primary {} has tablespace \"{}\": a cluster with tablespaces of its own cannot be backed up online", k,
             rows[0][0]);
    }
  }

  void copy_data(int k) {
    fmt::print("primary {}: base backup\n", k);
    fflush(stdout);
    const std::string place = fmt::format("node{}/data", k);
    fs::create_directories((to_ / place).parent_path());
    output_of({(c_.bindir(k) / "pg_basebackup").string(), "-D", (to_ / place).string(), "-c", "fast", "-X", "stream",
               "-d", c_.dsn(k)});
    for (const auto& entry : fs::directory_iterator(to_ / place / "pg_wal")) fs::remove_all(entry.path());
    fs::create_directories(to_ / place / "pg_wal/archive_status");
    add(place + "/backup_manifest", sum_of(to_ / place / "backup_manifest"));
  }

  // The base backups are younger than the checkpoint (RequiredCheckpointLock), so they need nothing before either.
  void skip_what_checkpoint_has(std::vector<KeptWal>* wal) const {
    coherence::Problem problem;
    const fs::path saved = c_.saved_pool();
    const auto there = recovery::read_checkpoint(saved.c_str(), manifest_.pool_id, manifest_.saves, &problem);
    if (!there) fail("{}", problem.text);
    for (KeptWal& one : *wal)
      for (const recovery::Checkpoint::Log& log : there->logs)
        if (int(log.node) == one.primary() && log.after == logs_of(c_, one.primary()).back().after)
          one.needs_only_from(log.position);
  }

  // Without that no restore point goes on from this backup.
  bool archives(AllPrimaries& primaries) const {
    for (const int k : c_.chosen(0)) {
      const auto rows = primaries[k].require("SELECT pg_catalog.current_setting('archive_mode')", kLookMax);
      if (rows.at(0).at(0) != "off") return true;
    }
    return false;
  }

  // gclctl.point-has-rings
  void mark_backed_up() const {
    const fs::path mark = coherence::BesideCopy(c_.saved_pool().c_str(), coherence::BesideCopy::kBackedUp).text;
    write_text(mark, "");
  }

  // The number of the server's life lies beside its data, not under its WAL (ddl.own-data-directory).
  void require_same_life(int k) const {
    const fs::path life = fs::path("gcl_ddl") / "life";
    if (read_text(c_.data(k) / life) != read_text(to_ / fmt::format("node{}", k) / "data" / life))
      fail("primary {} was just starting: take the backup again", k);
  }

  void open_copy() {
    for (const fs::path& file : files_of_copy(c_.saved_pool())) {
      open_.push_back(open_to_read(file));
      names_.push_back(file.filename());
    }
    const fs::path journal = coherence::BesideCopy(c_.saved_pool().c_str(), coherence::BesideCopy::kJournal).text;
    if (!fs::exists(journal)) return;
    journal_ = open_to_read(journal);
    journal_name_ = journal.filename();
  }

  void copy_pool(const Cut& cut) {
    for (size_t i = 0; i < open_.size(); ++i) add(names_[i], copy_open_file(*open_[i], to_ / names_[i]));
    if (journal_) add(journal_name_, copy_open_file(*journal_, to_ / journal_name_, cut.journal_bytes));
  }

  void copy_removed_logs() {
    for (const fs::path& dir : kept_log_directories(c_)) {
      if (fs::is_empty(dir / "pg_wal"))
        fail(
            "the log of a former primary is not here, and a backup without it could not be started: put it into {}, or "
            "stop all primaries once",
            (dir / "pg_wal").string());
      for (const fs::path& part : {dir.filename() / "pg_wal", dir.filename() / "global"}) copy_files(part);
    }
  }

  void copy_files(const fs::path& place) {
    if (!fs::exists(c_.dir / place)) return;
    fs::create_directories(to_ / place);
    for (const auto& entry : fs::directory_iterator(c_.dir / place))
      if (entry.is_regular_file())
        add(place / entry.path().filename(), copy_summed(entry.path(), to_ / place / entry.path().filename()));
  }

  // The WAL was kept, and the copy has been one and the same, if the pool was not saved meanwhile.
  void require_unchanged() const {
    const coherence::PoolOutline now = outline();
    if (now.pool_id != manifest_.pool_id || now.saves != manifest_.saves)
      fail("the pool was saved while the backup was taken, by a stop of all primaries: take the backup again");
    if (read_text(c_.dir / Cluster::kFileName) != description_)
      fail("primaries were added or removed while the backup was taken: take the backup again");
  }

  const Cluster& c_;
  const fs::path to_;
  const std::string description_;
  const RequiredCheckpointLock lock_;
  BackupManifest manifest_;
  std::vector<std::unique_ptr<coherence::File>> open_;
  std::vector<std::string> names_;
  std::unique_ptr<coherence::File> journal_;
  std::string journal_name_;
};

// What a backup that failed has left is none.
int take(const Cluster& c, const fs::path& to) {
  try {
    Backup(c, to).run();
    return 0;
  } catch (...) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(to)) fs::remove_all(entry.path(), ignored);
    throw;
  }
}

}  // namespace

int backup(const std::string& dir, const std::string& to) {
  const Cluster c = Cluster::load(dir);
  const fs::path target = fs::weakly_canonical(fs::absolute(to));
  check_may_act_for(c.account);
  const bool made = take_directory(target, c.account);
  const int code = run_as(c.account, [&] { return take(c, target); });
  std::error_code ignored;
  if (code != 0 && made) fs::remove(target, ignored);
  return code;
}

int verify_backup(const std::string& from) {
  const fs::path dir = fs::canonical(from);
  return run_as(account_of(dir), [&] {
    BackupManifest::require(dir);
    const BackupManifest manifest = BackupManifest::read(dir);
    check_backup(dir, manifest);
    fmt::print("{} is whole: {} primaries, as of {}\n", dir.string(), manifest.cut.size(), manifest.time);
    return 0;
  });
}

}  // namespace gclctl
