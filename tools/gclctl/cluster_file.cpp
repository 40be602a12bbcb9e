// DIR/cluster.conf: a line that makes the directory gclctl's, and one for each key, as CLI11 reads and writes them.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/text_file.hpp"

namespace gclctl {
namespace {

constexpr const char* kFormatWords = "# pg_gcl cluster, format ";
constexpr const char* kFirstLine = "# pg_gcl cluster, format 1; written by gclctl";

// Numbers of primaries, with blanks between them.
std::string refuse_other_than_numbers(const std::string& text) {
  std::istringstream in(text);
  for (std::string word; in >> word;)
    if (const std::string refusal = CLI::Range(1, kPrimariesMax)(word); !refusal.empty()) return refusal;
  return "";
}

std::string refuse_empty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

// The keys, bound to a cluster: for reading into it, or for writing what it says.
class Description : public CLI::App {
 public:
  explicit Description(Cluster* c) {
    for (const int k : c->removed) removed_ += fmt::format("{}{}", removed_.empty() ? "" : " ", k);
    // A value is all of the rest of its line: a path may have blanks, commas, brackets and # in it.
    get_config_formatter_base()->comment('\0')->arrayBounds('\1', '\1');
    allow_config_extras(CLI::config_extras_mode::ignore_all);
    option_defaults()->required();
    const CLI::Validator text(refuse_empty, "");
    add_option("id", c->id)->check(text)->capture_default_str();
    add_option("primaries", c->primaries)->check(CLI::Range(1, kPrimariesMax))->capture_default_str();
    add_option("port", c->port)->check(CLI::Range(1, 65535 - kPrimariesMax))->capture_default_str();
    add_option("cache_bytes", c->cache_bytes)->check(CLI::Range(uint64_t{1}, kSizeMax))->capture_default_str();
    add_option("memory_dir", c->memory_dir)->check(text)->capture_default_str();
    add_option("socket_dir", c->socket_dir)->check(text)->capture_default_str();
    add_option("transport", c->transport)
        ->required(false)
        ->check(CLI::IsMember({"shm", "tcp", "verbs"}))
        ->capture_default_str();
    add_option("memory_port", c->memory_port)->required(false)->check(CLI::Range(0, 65535))->capture_default_str();
    add_option("rdma_device", c->rdma_device)->required(false)->capture_default_str();
    add_option("patience", c->patience_s)
        ->required(false)
        ->check(CLI::Range(kPatienceMinS, kPatienceMaxS))
        ->capture_default_str();
    add_option("locale", c->locale)->check(text)->capture_default_str();
    add_option("removed", removed_)
        ->required(false)
        ->check(CLI::Validator(refuse_other_than_numbers, ""))
        ->capture_default_str();
    add_option("host", c->host)->required(false)->capture_default_str();
  }
  std::set<int> removed() const {
    std::istringstream in(removed_);
    return {std::istream_iterator<int>(in), {}};
  }

 private:
  std::string removed_;
};

}  // namespace

Cluster Cluster::load(const fs::path& dir, const char* name) {
  const OwnersFile said = read_owners_file(dir, name);
  std::istringstream in(said.text);
  std::string line;
  if (!said.found || !std::getline(in, line) || line != kFirstLine) {
    if (line.starts_with(kFormatWords))
      fail("{} has format {}, and format 1 is read here; a later version of gclctl wrote it: use that one",
           (dir / name).string(), std::atoi(line.c_str() + strlen(kFormatWords)));
    if (name != std::string(kFileName) && name != std::string(kUnfinished))
      fail("{} is damaged, or somebody else's", (dir / name).string());
    fail("{} is not a directory made by gclctl init", dir.string());
  }
  Cluster c;
  c.dir = said.dir;
  c.account = said.account;
  try {
    Description description(&c);
    description.parse_from_stream(in);
    c.removed = description.removed();
  } catch (const CLI::ParseError& e) {
    fail("{}: {}; every key has a line KEY=VALUE there, as gclctl init wrote it", (dir / name).string(), e.what());
  }
  if (c.host.empty()) return c;
  const OwnersFile plan = read_owners_file(c.dir, Plan::kFileName);
  if (!plan.found) fail("{} is missing, or somebody else's", (c.dir / Plan::kFileName).string());
  c.plan = std::make_shared<const Plan>(Plan::parse(plan.text, (c.dir / Plan::kFileName).string()));
  c.plan->check_host(c.host);
  return c;
}

static std::string description_of(const Cluster& c) {
  Cluster said = c;
  return std::string(kFirstLine) + "\n" + Description(&said).config_to_str(true);
}

void Cluster::begin() const { write_text(dir / kUnfinished, description_of(*this)); }

// Through a file of the unfinished one's name.
void Cluster::save() const { write_text(dir / kFileName, description_of(*this)); }

}  // namespace gclctl
