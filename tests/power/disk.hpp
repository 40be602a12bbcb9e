// A disk as a recording tells it, and what a loss of power may leave on it.
//
// power.durable-when-told: what a sync that has returned was for is durable.  That is a file's bytes and size; for a
//     directory, the names that were made, changed or removed in it.
// power.new-file-has-name: the sync of a file that is new makes durable that it is there, under the name that it was
//     made with, and the directories above it: ext4 and xfs do so, and PostgreSQL relies on it.
// power.anything-else: of what is not durable there may be any part.  Each sector of 512 bytes has what it had at any
//     moment since it was durable, the size likewise, and a name is there or not; but a rename is done or not done as
//     a whole.  With ordered names, as with a journal of them, those that are there are the first ones.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/power/record.hpp"

namespace power {

inline constexpr uint64_t kSector = 512;

struct Data {  // a change of a file's bytes that is not durable
  uint64_t number;
  Kind kind;  // kWrite, kZero, kSize
  uint64_t at, length;
  const char* from;
};

using Bytes = std::vector<char>;

struct Node {
  bool is_directory = false;
  std::string path;      // the last that it had
  uint64_t born = 0;     // the change that made it; 0: it was there
  Node* home = nullptr;  // the directory that it was made in
  // A file's:
  std::string source;  // has its durable bytes, until they are read
  Bytes bytes;         // durable
  std::vector<Data> pending;
  // A directory's: what there is, and what is durable, with the change that made it so.
  struct Entry {
    Node* node = nullptr;  // nullptr: removed
    uint64_t number = 0;
  };
  std::map<std::string, Node*> now;
  std::map<std::string, Entry> durable;
};

// How much of what is not durable there is.
struct Survival {
  double bytes = 0, names = 0;  // the chance of each
  bool ordered = false;         // names
  static Survival of(std::mt19937_64& chance);
};
inline constexpr Survival kAll{1, 1, false};

class Disk {
 public:
  // As it was when recording began.  Syncs of files whose path matches `deaf` do nothing, if that is not empty.
  Disk(const std::string& recording, const std::string& deaf);
  void apply(uint64_t number, const Record&);
  // Ends what apply() can be called for.
  void lose_power(std::mt19937_64& chance, const Survival&);
  // All that is durable, into a new directory.
  void write(const std::string& target);
  // The path of what a record is about.
  std::string path_of(const Record&) const;

 private:
  struct Set {
    Node* directory;
    std::string name;
    Node* node;
  };
  struct NameChange {
    uint64_t number;
    std::vector<Set> sets;
    bool durable = false;
  };
  struct Place {
    Node* directory;
    std::string name;
  };

  Node* make(bool is_directory, uint64_t inode, const std::string& path);
  Place place(const std::string& path) const;
  Node* find(const std::string& path) const;
  Node* file(uint64_t inode);
  void change_names(uint64_t number, std::vector<Set> sets);
  void opened(uint64_t number, const Record&, const std::string& path);
  void moved(uint64_t number, Kind, const std::string& from, const std::string& to);
  void removed(uint64_t number, const std::string& path);
  void sync(Node*, uint64_t upto);
  void make_durable(NameChange&);
  void make_birth_durable(Node*);
  static void load(Node*);
  static void apply(Bytes&, const Data&);
  static void lose_bytes(Node*, std::mt19937_64& chance, double each);
  void write(Node*, const std::string& path, std::map<Node*, std::string>& written);

  std::string root_;
  const std::string deaf_;
  const std::regex deaf_to_;
  std::deque<std::unique_ptr<Node>> nodes_;
  std::unordered_map<uint64_t, Node*> by_inode_;
  Node* top_ = nullptr;
  std::map<uint64_t, NameChange> names_;  // not durable, by number
};

std::string path_in(const Record&);
std::string other_path_in(const Record&);
const char* data_in(const Record&);

}  // namespace power
