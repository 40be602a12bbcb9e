#include "tools/gclctl/plan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <toml.hpp>

#include "coherence/base/ids.hpp"
#include "coherence/transport/net/address.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool.hpp"

namespace gclctl {
namespace {

constexpr size_t kPlanBytesMax = 64 << 10;  // as directory.cpp reads it
constexpr uint64_t kPlannedCacheMin = 1 << 20;

// A table of the file, whose keys are taken one after the other.
class Section {
 public:
  Section(const toml::value& table, std::string file, std::string what)
      : table_(table), file_(std::move(file)), what_(std::move(what)) {}

  template <class... Args>
  [[noreturn]] void refuse(const toml::value& at, fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}, line {}: {}", file_, at.location().line(), fmt::format(format, std::forward<Args>(args)...));
  }

  const toml::value* find(const char* key) {
    taken_.insert(key);
    return table_.contains(key) ? &table_.at(key) : nullptr;
  }
  const toml::value& need(const char* key) {
    const toml::value* const found = find(key);
    if (found == nullptr) refuse(table_, "{} lacks \"{}\"", what_, key);
    return *found;
  }
  std::string text(const char* key) { return text_of(key, need(key)); }
  std::string text(const char* key, const std::string& otherwise) {
    const toml::value* const found = find(key);
    return found == nullptr ? otherwise : text_of(key, *found);
  }
  int number(const char* key, int least, int most) { return number_of(key, need(key), least, most); }
  int number(const char* key, int least, int most, int otherwise) {
    const toml::value* const found = find(key);
    return found == nullptr ? otherwise : number_of(key, *found, least, most);
  }
  int number_of(const char* key, const toml::value& value, int least, int most) const {
    if (!value.is_integer() || value.as_integer() < least || value.as_integer() > most)
      refuse(value, "\"{}\" of {} is a number from {} to {}", key, what_, least, most);
    return int(value.as_integer());
  }
  // "1GB", in quotes.
  uint64_t size(const char* key, uint64_t least, uint64_t otherwise) {
    const toml::value* const found = otherwise == 0 ? &need(key) : find(key);
    if (found == nullptr) return otherwise;
    try {
      const uint64_t bytes = parse_size(text_of(key, *found));
      if (bytes < least) refuse(*found, "\"{}\" of {} is at least {} MB", key, what_, least >> 20);
      return bytes;
    } catch (const Failure& e) {
      if (std::string(e.what()).starts_with(file_)) throw;
      refuse(*found, "\"{}\" of {}: {}", key, what_, e.what());
    }
  }
  std::string absolute_path(const char* key) {
    const std::string path = text(key);
    if (!path.starts_with('/')) refuse(need(key), "\"{}\" begins with /: hosts have different directories", key);
    return path;
  }
  // That others can reach: with a host and a port.  `required`: or it may be missing, and is empty then.
  std::string address(const char* key, bool required) {
    if (!required && find(key) == nullptr) return "";
    const std::string text = this->text(key);
    coherence::Problem problem;
    const auto address = coherence::net::Address::parse(text, &problem);
    if (!address) refuse(need(key), "\"{}\" of {}: {}", key, what_, problem.text);
    if (address->is_unix() || text.ends_with(":0"))
      refuse(need(key), "\"{}\" of {} is host:port, with a port that others know", key, what_);
    return text;
  }
  void refuse_others() const {
    for (const auto& [key, value] : table_.as_table())
      if (!taken_.contains(key)) refuse(value, "{} has no \"{}\"", what_, key);
  }
  const toml::value& table() const { return table_; }

 private:
  std::string text_of(const char* key, const toml::value& value) const {
    if (!value.is_string() || value.as_string().str.empty())
      refuse(value, "\"{}\" of {} is a text in quotes", key, what_);
    const std::string& text = value.as_string().str;
    if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }))
      refuse(value, "\"{}\" of {} has a control character", key, what_);
    return text;
  }
  const toml::value& table_;
  const std::string file_, what_;
  std::set<std::string> taken_;
};

class Reader {
 public:
  Reader(const toml::value& root, std::string file) : root_(root), file_(std::move(file)) {}

  Plan read() {
    Section all(root_, file_, "the cluster");
    plan_.transport = all.text("transport", plan_.transport);
    if (plan_.transport != "tcp")
      all.refuse(all.need("transport"), "\"transport\" is tcp: hosts reach each other by it");
    plan_.key = all.absolute_path("key");
    plan_.saved = all.absolute_path("saved");
    plan_.cache_bytes = all.size("cache_size", kPlannedCacheMin, plan_.cache_bytes);
    plan_.patience_s = all.number("patience", kPatienceMinS, kPatienceMaxS, plan_.patience_s);
    each(all, "memory_node", [&](const toml::value& table) { memory_node(table); });
    each(all, "primary", [&](const toml::value& table) { primary(table); });
    all.refuse_others();
    std::sort(plan_.primaries.begin(), plan_.primaries.end(), [](auto& a, auto& b) { return a.number < b.number; });
    std::sort(plan_.memory_nodes.begin(), plan_.memory_nodes.end(),
              [](auto& a, auto& b) { return a.number < b.number; });
    for (uint32_t k = 0; k < plan_.memory_nodes.size(); k++)
      if (plan_.memory_nodes[k].number != k)
        fail("{}: there is no memory node {}, but there is number {}", file_, k, plan_.memory_nodes[k].number);
    return std::move(plan_);
  }

 private:
  template <class Take>
  void each(Section& all, const char* key, const Take& take) {
    const toml::value& list = all.need(key);
    if (!list.is_array() || list.as_array().empty() || !list.as_array().front().is_table())
      all.refuse(list, "each {} is a section [[{}]]", key, key);
    for (const toml::value& one : list.as_array()) take(one);
  }

  void memory_node(const toml::value& table) {
    Section one(table, file_, "this memory node");
    PlannedMemoryNode node;
    node.number = uint32_t(one.number("number", 0, coherence::kMemoryNodesMax - 1));
    node.host = one.text("host");
    node.address = one.address("address", true);
    node.listen = one.address("listen", false);
    node.bytes = one.size("size", kMemoryNodeBytesMin, 0);
    one.refuse_others();
    once(one, "memory node", int(node.number), node.address);
    plan_.memory_nodes.push_back(node);
  }

  void primary(const toml::value& table) {
    Section one(table, file_, "this primary");
    PlannedPrimary primary;
    primary.number = one.number("number", 1, kPrimariesMax);
    primary.host = one.text("host");
    primary.address = one.address("address", true);
    primary.port = one.number("port", 1, 65535);
    one.refuse_others();
    once(one, "primary", primary.number, primary.address);
    if (const auto [at, fresh] = ports_.insert({{primary.host, primary.port}, primary.number}); !fresh)
      one.refuse(table, "primaries {} and {} are both on host {} with port {}", at->second, primary.number,
                 primary.host, primary.port);
    plan_.primaries.push_back(primary);
  }

  // plan.is-exact
  void once(const Section& one, const char* kind, int number, const std::string& address) {
    const std::string name = fmt::format("{} {}", kind, number);
    if (const auto [at, fresh] = names_.insert({name, line(one)}); !fresh)
      one.refuse(one.table(), "there are two with one number: {} is on line {}, too", name, at->second);
    if (const auto [at, fresh] = addresses_.insert({address, name}); !fresh)
      one.refuse(one.table(), "{} and {} have one address, {}", at->second, name, address);
  }
  static size_t line(const Section& one) { return one.table().location().line(); }

  const toml::value& root_;
  const std::string file_;
  Plan plan_;
  std::map<std::string, size_t> names_;
  std::map<std::string, std::string> addresses_;
  std::map<std::pair<std::string, int>, int> ports_;
};

}  // namespace

Plan Plan::parse(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  try {
    const toml::value root = toml::parse(in, name);
    return Reader(root, name).read();
  } catch (const toml::exception& e) {
    std::string why = e.what();  // of several lines, which show the place
    if (const size_t first = why.find_first_not_of('\n'); first != std::string::npos) why.erase(0, first);
    fail("{} is no TOML: {}", name, why);
  }
}

Plan Plan::load(const std::string& file) { return parse(text_of(file), file); }

std::string Plan::text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kPlanBytesMax + 1, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  if (!in.is_open() || in.bad() || (in.gcount() == 0 && !in.eof()))
    fail("{} cannot be read: {}", file, strerror(errno));
  text.resize(size_t(in.gcount()));
  if (text.size() > kPlanBytesMax) fail("{} is longer than {} KB", file, kPlanBytesMax >> 10);
  return text;
}

const PlannedPrimary* Plan::primary(int number) const {
  for (const PlannedPrimary& one : primaries)
    if (one.number == number) return &one;
  return nullptr;
}

std::vector<std::string> Plan::hosts() const {
  std::set<std::string> names;
  for (const auto& one : memory_nodes) names.insert(one.host);
  for (const auto& one : primaries) names.insert(one.host);
  return {names.begin(), names.end()};
}

void Plan::check_host(const std::string& host) const {
  const std::vector<std::string> names = hosts();
  if (std::find(names.begin(), names.end(), host) == names.end())
    fail("nothing is on a host \"{}\": there are {}", host, fmt::join(names, ", "));
}

}  // namespace gclctl
