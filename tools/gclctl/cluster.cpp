#include "tools/gclctl/cluster.hpp"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "coherence/base/os.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {

fs::path Cluster::prefix(int k) const {
  const fs::path link = data(k).parent_path() / "prefix";
  std::error_code none;
  const fs::path to = fs::read_symlink(link, none);
  return none ? prefix() : dir / to.filename();
}

fs::path Cluster::bindir(int k) const { return mirrored(prefix(k), installation().bindir); }

void Cluster::use_prefix(int k, const fs::path& prefix) const {
  const fs::path link = data(k).parent_path() / "prefix", fresh = data(k).parent_path() / "prefix.new";
  fs::remove(fresh);
  fs::create_symlink(fs::path("..") / prefix.filename(), fresh);
  fs::rename(fresh, link);
  sync_path(link.parent_path());
}

std::string Cluster::dsn(int k) const {
  return fmt::format("host={} port={} user=postgres dbname=postgres", conninfo_value(socket_dir.string()), port_of(k));
}

std::vector<int> Cluster::numbers() const {
  std::vector<int> all;
  if (plan) {
    for (const PlannedPrimary& one : plan->primaries)
      if (one.host == host) all.push_back(one.number);
    return all;
  }
  for (int k = 1; k <= primaries; k++) all.push_back(k);
  return all;
}

fs::path Cluster::any_bindir() const {
  const std::vector<int> here = chosen(0);
  return here.empty() ? mirrored(prefix(), installation().bindir) : bindir(here.front());
}

void Cluster::require_one_machine(const std::string& verb) const {
  if (on_hosts())
    fail("{} is the part of host {} in a cluster of several hosts: gclctl {} works on clusters of one machine so far",
         dir.string(), host, verb);
}

void Cluster::check_number(int node) const {
  if (plan && node > 0) {
    const PlannedPrimary* const one = plan->primary(node);
    if (one == nullptr) fail("there is no primary {} in {}", node, (dir / Plan::kFileName).string());
    if (one->host != host)
      fail("primary {} is on host {}, and this is host {}: run the command there", node, one->host, host);
  }
  if (node > primaries) fail("there is no primary {}: the cluster has {}", node, primaries - int(removed.size()));
}

std::vector<int> Cluster::chosen(int node) const {
  check_number(node);
  if (removed.contains(node))
    fail(
        "primary {} was removed from the cluster: the others have gone on without it. A new one gets its number with: "
        "gclctl add-primary {} --node {}",
        node, dir.string(), node);
  if (node > 0) return {node};
  std::vector<int> all = numbers();
  std::erase_if(all, [this](int k) { return removed.contains(k); });
  return all;
}

void Cluster::remove_moved_data(int k) const {
  std::error_code none;
  const fs::path there = fs::canonical(data(k), none);
  if (none || !fs::is_symlink(data(k))) return;
  for (const auto& entry : fs::directory_iterator(there)) fs::remove_all(entry.path());
  fs::remove(there, none);
}

int Cluster::postmaster(int k) const { return postmaster_of(data(k)); }

int postmaster_of(const fs::path& data) {
  const fs::path file = data / "postmaster.pid";
  std::ifstream in(file);
  if (!in && errno != ENOENT && errno != ENOTDIR) fail("cannot read {}: {}", file.string(), strerror(errno));
  int pid = 0;
  using Is = coherence::ProcessSight::Is;
  in >> pid;
  if (in.bad()) fail("cannot read {}: {}", file.string(), strerror(errno));
  if (!in || pid <= 0 || coherence::look_at_process(pid).is == Is::kGone) return 0;  // a zombie is, too
  // gclctl.runs-where-it-works
  if (kill(pid, 0) != 0 && errno == EPERM) return 0;
  return works_in(pid, data).value_or(true) ? pid : 0;
}

bool Cluster::any_runs() const {
  for (int k : numbers())
    if (postmaster(k) != 0) return true;
  return false;
}

std::string conninfo_value(const std::string& value) {
  if (!value.empty() && value.find_first_of(" \t\n'\\") == std::string::npos) return value;
  std::string quoted = "'";
  for (const char letter : value) {
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "'";
}

uint64_t parse_size(const std::string& text) {
  static const std::map<std::string, int> kShift = {{"B", 0}, {"kB", 10}, {"MB", 20}, {"GB", 30}, {"TB", 40}};
  size_t digits = text.find_first_not_of("0123456789");
  auto unit = digits == std::string::npos ? kShift.end() : kShift.find(text.substr(digits));
  if (digits == 0 || digits > 9 || unit == kShift.end()) fail("\"{}\" is not a size; write 256MB or 1GB", text);
  const uint64_t number = std::stoull(text.substr(0, digits));
  if (number > kSizeMax >> unit->second) fail("\"{}\" is more than {} TB", text, kSizeMax >> 40);
  return number << unit->second;
}

std::string size_setting(uint64_t bytes) { return fmt::format("{}kB", bytes >> 10); }

}  // namespace gclctl
