#include "tests/power/disk.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace power {

namespace fs = std::filesystem;

std::string path_in(const Record& record) { return {reinterpret_cast<const char*>(&record + 1), record.path_bytes}; }
std::string other_path_in(const Record& record) {
  return {reinterpret_cast<const char*>(&record + 1) + record.path_bytes, record.other_bytes};
}
const char* data_in(const Record& record) {
  return reinterpret_cast<const char*>(&record + 1) + record.path_bytes + record.other_bytes;
}

// One of four is that nothing is left, one that all is.
Survival Survival::of(std::mt19937_64& chance) {
  const auto some = [&] {
    const uint64_t which = chance() % 4;
    return which == 0 ? 0.0 : which == 1 ? 1.0 : double(chance() % 1000) / 1000;
  };
  return {some(), some(), chance() % 2 == 0};
}

Disk::Disk(const std::string& recording, const std::string& deaf) : deaf_(deaf), deaf_to_(deaf) {
  std::ifstream names(recording + "/names");
  std::string line;
  std::getline(names, root_);
  while (std::getline(names, line)) {
    const size_t blank = line.find(' ');
    const uint64_t inode = std::stoull(line.substr(1, blank));
    const std::string path = line.substr(blank + 1);
    Node* node = make(line[0] == 'd', inode, path);
    node->source = recording + "/initial" + path.substr(root_.size());
    if (path == root_) {
      top_ = node;
      continue;
    }
    const Place at = place(path);
    at.directory->now[at.name] = node;
    at.directory->durable[at.name] = {node, 0};
  }
}

Node* Disk::make(bool is_directory, uint64_t inode, const std::string& path) {
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->is_directory = is_directory;
  node->path = path;
  by_inode_[inode] = node;
  return node;
}

Disk::Place Disk::place(const std::string& path) const {
  const size_t slash = path.rfind('/');
  return {find(path.substr(0, slash)), path.substr(slash + 1)};
}

Node* Disk::find(const std::string& path) const {
  Node* node = top_;
  for (size_t at = root_.size() + 1; node != nullptr && at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const auto found = node->now.find(path.substr(at, end - at));
    node = found == node->now.end() ? nullptr : found->second;
    at = end + 1;
  }
  return node;
}

Node* Disk::file(uint64_t inode) {
  const auto found = by_inode_.find(inode);
  return found != by_inode_.end() ? found->second : make(false, inode, "");
}

std::string Disk::path_of(const Record& record) const {
  if (record.path_bytes != 0) return path_in(record) + (record.other_bytes != 0 ? " -> " + other_path_in(record) : "");
  const auto found = by_inode_.find(record.inode);
  return found == by_inode_.end() ? "" : found->second->path;
}

void Disk::apply(uint64_t number, const Record& record) {
  const std::string path = path_in(record);
  switch (record.kind) {
    case Kind::kOpen:
      return opened(number, record, path);
    case Kind::kWrite:
    case Kind::kZero:
    case Kind::kSize:
      return file(record.inode)->pending.push_back({number, record.kind, record.at, record.length, data_in(record)});
    case Kind::kRename:
    case Kind::kLink:
      return moved(number, record.kind, path, other_path_in(record));
    case Kind::kUnlink:
    case Kind::kRmdir:
      return removed(number, path);
    case Kind::kMkdir: {
      const Place at = place(path);
      if (at.directory == nullptr) return;
      Node* node = make(true, record.inode, path);
      node->born = number;
      node->home = at.directory;
      return change_names(number, {{at.directory, at.name, node}});
    }
    case Kind::kSync:
      return sync(file(record.inode), record.at);
    case Kind::kSyncAll:
      for (const auto& node : nodes_) sync(node.get(), record.at);
      return;
  }
}

void Disk::opened(uint64_t number, const Record& record, const std::string& path) {
  if ((record.at & kCreated) != 0 || by_inode_.find(record.inode) == by_inode_.end()) {
    const Place at = place(path);
    if (at.directory == nullptr) return;
    Node* node = make(false, record.inode, path);
    node->born = number;
    node->home = at.directory;
    change_names(number, {{at.directory, at.name, node}});
  }
  if ((record.at & kTruncated) != 0) file(record.inode)->pending.push_back({number, Kind::kSize, 0, 0, nullptr});
}

void Disk::moved(uint64_t number, Kind kind, const std::string& from, const std::string& to) {
  const Place a = place(from), b = place(to);
  Node* node = find(from);
  if (node == nullptr || b.directory == nullptr) return;
  node->path = to;
  std::vector<Set> sets;
  if (kind == Kind::kRename) sets.push_back({a.directory, a.name, nullptr});
  sets.push_back({b.directory, b.name, node});
  change_names(number, std::move(sets));
}

void Disk::removed(uint64_t number, const std::string& path) {
  const Place at = place(path);
  if (at.directory != nullptr) change_names(number, {{at.directory, at.name, nullptr}});
}

void Disk::change_names(uint64_t number, std::vector<Set> sets) {
  for (const Set& set : sets) {
    if (set.node == nullptr)
      set.directory->now.erase(set.name);
    else
      set.directory->now[set.name] = set.node;
  }
  names_[number] = {number, std::move(sets)};
}

void Disk::sync(Node* node, uint64_t upto) {
  if (!deaf_.empty() && std::regex_search(node->path, deaf_to_)) return;
  make_birth_durable(node);
  if (node->is_directory) {
    for (auto it = names_.begin(); it != names_.end() && it->first < upto;) {
      const auto& sets = it->second.sets;
      if (std::any_of(sets.begin(), sets.end(), [&](const Set& set) { return set.directory == node; })) {
        make_durable(it->second);
        it = names_.erase(it);
      } else {
        ++it;
      }
    }
    return;
  }
  auto& pending = node->pending;
  const auto end = std::find_if(pending.begin(), pending.end(), [&](const Data& one) { return one.number >= upto; });
  if (end == pending.begin()) return;
  load(node);
  for (auto one = pending.begin(); one != end; ++one) apply(node->bytes, *one);
  pending.erase(pending.begin(), end);
}

// What came later stays.
void Disk::make_durable(NameChange& change) {
  for (const Set& set : change.sets) {
    Node::Entry& entry = set.directory->durable[set.name];
    if (entry.number <= change.number) entry = {set.node, change.number};
  }
}

void Disk::make_birth_durable(Node* node) {
  for (; node != nullptr; node = node->home) {
    const auto change = names_.find(node->born);
    if (node->born == 0 || change == names_.end()) continue;
    make_durable(change->second);
    names_.erase(change);
  }
}

void Disk::load(Node* node) {
  if (node->source.empty()) return;
  std::ifstream in(node->source, std::ios::binary);
  node->bytes.resize(fs::file_size(node->source));
  in.read(node->bytes.data(), std::streamsize(node->bytes.size()));
  node->source.clear();
}

void Disk::apply(Bytes& bytes, const Data& one) {
  if (one.kind == Kind::kSize) return bytes.resize(one.at);
  if (bytes.size() < one.at + one.length) bytes.resize(one.at + one.length);
  if (one.kind == Kind::kWrite)
    memcpy(bytes.data() + one.at, one.from, one.length);
  else
    memset(bytes.data() + one.at, 0, one.length);
}

void Disk::lose_power(std::mt19937_64& chance, const Survival& survival) {
  const auto random = [&] { return std::uniform_real_distribution<double>(0, 1)(chance); };
  const uint64_t first =
      uint64_t(double(names_.size()) * (survival.names == 0 || survival.names == 1 ? survival.names : random()));
  uint64_t passed = 0;
  for (auto& [number, change] : names_)
    if (survival.ordered ? passed++ < first : random() < survival.names) make_durable(change);
  names_.clear();
  for (const auto& node : nodes_)
    if (!node->pending.empty()) lose_bytes(node.get(), chance, survival.bytes);
}

// A sector has what it had after any one of the changes, or before all; so has the size.
void Disk::lose_bytes(Node* node, std::mt19937_64& chance, double each) {
  load(node);
  const auto is_there = [&] { return std::uniform_real_distribution<double>(0, 1)(chance) < each; };
  Bytes now = node->bytes, left = node->bytes;
  uint64_t size = left.size();
  for (const Data& one : node->pending) {
    const uint64_t before = now.size();
    apply(now, one);
    if (now.size() != before && is_there()) size = now.size();
    const bool is_size = one.kind == Kind::kSize;
    const uint64_t from = is_size ? std::min(before, one.at) : one.at,
                   end = is_size ? std::max(before, one.at) : one.at + one.length;
    if (left.size() < end) left.resize(end);
    for (uint64_t sector = from / kSector * kSector; sector < end; sector += kSector) {
      if (!is_there()) continue;
      const uint64_t bytes = std::min(kSector, left.size() - sector);
      for (uint64_t i = sector; i < sector + bytes; ++i) left[i] = i < now.size() ? now[i] : 0;
    }
  }
  left.resize(size);
  node->bytes = std::move(left);
  node->pending.clear();
}

void Disk::write(const std::string& target) {
  std::map<Node*, std::string> written;
  write(top_, target, written);
}

void Disk::write(Node* node, const std::string& path, std::map<Node*, std::string>& written) {
  if (const auto [other, is_new] = written.emplace(node, path); !is_new) {
    if (!node->is_directory) fs::create_hard_link(other->second, path);
    return;  // a directory that was renamed is in one place
  }
  if (node->is_directory) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    for (const auto& [name, entry] : node->durable)
      if (entry.node != nullptr) write(entry.node, path + "/" + name, written);
    return;
  }
  if (!node->source.empty()) {
    fs::copy_file(node->source, path);
    return;
  }
  std::ofstream out(path, std::ios::binary);
  constexpr uint64_t kPiece = 65536;  // what is zero stays a hole
  static const Bytes zeros(kPiece);
  for (uint64_t at = 0; at < node->bytes.size(); at += kPiece) {
    const uint64_t bytes = std::min(kPiece, node->bytes.size() - at);
    if (memcmp(&node->bytes[at], zeros.data(), bytes) == 0) continue;
    out.seekp(std::streamoff(at));
    out.write(&node->bytes[at], std::streamsize(bytes));
  }
  out.close();
  fs::resize_file(path, node->bytes.size());
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace power
